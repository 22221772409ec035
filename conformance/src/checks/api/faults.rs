//! What goes wrong around a session: killed children, signals, no descriptors left, guards that are
//! forgotten and panics.

use super::{enable, is_free, lend, open};
use crate::check::{Context, checks};
use crate::raw::{LONG, call, child, thread, wait_for};
use kcov::mode::TracePc;
use kcov::{Device, ErrorKind, Operation};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, Pid, fork, getpid};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

checks! {
    killed_children,
    signal_storm,
    no_descriptor_left,
    forgotten_guards,
    panic_in_a_forked_child,
    dropped_while_unwinding,
}

/// Numbers without order, the same each time.
struct Noise(u64);

impl Noise {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(0x9e37_79b9_7f4a_7c15);
        (self.0 >> 33) % bound
    }
}

/// How many descriptors the process has.
pub(super) fn descriptors() -> usize {
    let is_open = |&fd: &i32| {
        // SAFETY: the request reads a flag of a descriptor, or is refused.
        unsafe { libc::fcntl(fd, libc::F_GETFD) >= 0 }
    };
    (0..1024).filter(is_open).count()
}

/// A process that does nothing but `body`, until it is killed.
fn endless(mut body: impl FnMut()) -> Pid {
    // SAFETY: the check has one thread, so no lock is held by another one.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Parent { child } => child,
        ForkResult::Child => loop {
            if catch_unwind(AssertUnwindSafe(&mut body)).is_err() {
                // SAFETY: ends the process without the exit handlers, which are the parent's.
                unsafe { libc::_exit(101) }
            }
        },
    }
}

fn end(pid: Pid) {
    kill(pid, Signal::SIGKILL).expect("it can be killed");
    // Its last signals may arrive only now.
    let status = loop {
        match waitpid(pid, None) {
            Err(nix::errno::Errno::EINTR) => {}
            result => break result.expect("the child can be waited for"),
        }
    };
    let killed = nix::sys::wait::WaitStatus::Signaled(pid, Signal::SIGKILL, false);
    assert_eq!(status, killed, "it was killed and had nothing to complain about");
}

fn killed_children(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    let mut noise = Noise(1);
    let before = descriptors();
    for round in 1..=cx.rounds(60) {
        buffer.reset().expect("reset");
        let pid = endless(|| {
            let session = buffer.enable().expect("enabled, after all that was killed before");
            call();
            assert!(!session.trace().is_empty());
            drop(session);
        });
        // Anywhere between the fork and the middle of some session: of each two children one has
        // begun with sessions.
        let begun = || !buffer.trace().is_empty();
        assert!(round % 2 == 0 || wait_for(LONG, begun), "the child is traced");
        // To yield the only processor is to give the child all of its time on it.
        (0..noise.below(3)).for_each(|_| std::thread::yield_now());
        for step in 0..noise.below(1 << 16) {
            std::hint::black_box(step);
        }
        end(pid);
        let trace = buffer.trace();
        assert_eq!(trace.iter().count(), trace.len());
        if round % 20 == 0 {
            let seen: Vec<u64> = child(|| {
                let session = buffer.enable().expect("enabled in the next child");
                call();
                session.disable().expect("disabled").iter().map(u64::from).collect()
            });
            assert!(!seen.is_empty());
            assert_eq!(buffer.trace().iter().map(u64::from).collect::<Vec<_>>(), seen);
        }
    }
    assert_eq!(descriptors(), before, "no descriptor was lost");
    drop(device);
    assert!(is_free(cx));
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: i32) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

fn signal_storm(cx: &Context) {
    let action =
        SigAction::new(SigHandler::Handler(count_signal), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler adds to an atomic number, which may be done at any point.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.expect("a handler");
    let parent = getpid();
    let storm = endless(|| kill(parent, Signal::SIGUSR1).expect("a signal"));
    let mut device = open(cx, 1 << 16);
    // A processor that has both to run gives a signal only when it comes back from the other.
    let (wanted, mut sessions) = (cx.rounds(20), 0);
    while sessions < wanted || SIGNALS.load(Ordering::Relaxed) < wanted {
        let mut session = device.enable(TracePc).expect("a signal does not keep from enabling");
        session.reset();
        call();
        let trace = session.trace();
        let first: Vec<_> = trace.iter().collect();
        assert!(!first.is_empty());
        // Records that were there stay, whatever the handler adds.
        assert_eq!(trace.iter().collect::<Vec<_>>(), first);
        let all = session.disable().expect("a signal does not keep from disabling");
        assert!(all.len() >= first.len());
        sessions += 1;
    }
    end(storm);
    println!("{sessions} sessions under {} signals", SIGNALS.load(Ordering::Relaxed));
    assert!(is_free(cx));
}

fn no_descriptor_left(cx: &Context) {
    let mut device = open(cx, 1);
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit");
    // The lowest number that is free is the first that the limit forbids.
    let lowest = std::fs::File::open("/dev/null").expect("a file");
    let lowest = u64::try_from(std::os::fd::AsRawFd::as_raw_fd(&lowest)).expect("a number");
    setrlimit(Resource::RLIMIT_NOFILE, lowest, hard).expect("a lower limit");
    let refused = Device::builder().path(cx.device()).open();
    let used: Vec<_> = {
        let session = enable(&mut device);
        call();
        session.disable().expect("disabled").iter().collect()
    };
    setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("the old limit");
    let error = refused.expect_err("no descriptor is left");
    assert_eq!((error.operation(), error.kind()), (Operation::Open, ErrorKind::Other));
    assert!(error.to_string().contains(&format!("errno {}", libc::EMFILE)), "{error}");
    assert!(!used.is_empty(), "an open device needs no further descriptor");
    drop(enable(&mut open(cx, 1)));
}

fn forgotten_guards(cx: &Context) {
    // A thread leaves all that it has: its end frees the thread's place, the device stays open.
    thread(|| {
        let mut device = open(cx, 1);
        std::mem::forget(enable(&mut device));
        std::mem::forget(device);
    });
    thread(|| {
        let mut device = open(cx, 1);
        let session = enable(&mut device);
        call();
        assert!(!session.disable().expect("disabled").is_empty());
        std::mem::forget(device);
    });
    assert!(is_free(cx));
    // In a child everything is forgotten at once.
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    for _ in 0..3 {
        child(|| {
            std::mem::forget(buffer.enable().expect("enabled in the child"));
            call();
        });
        assert!(!buffer.trace().is_empty());
    }
    drop(enable(&mut device));
}

fn panic_in_a_forked_child(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    for _ in 0..3 {
        let (length, again) = child(|| {
            let panicked = catch_unwind(AssertUnwindSafe(|| {
                let _session = buffer.enable().expect("enabled in the child");
                call();
                resume_unwind(Box::new("in a traced section"));
            }));
            assert!(panicked.is_err());
            let length = buffer.trace().len();
            drop(buffer.enable().expect("unwinding has disabled"));
            (length, is_free(cx))
        });
        assert!(length > 0 && again);
    }
}

fn dropped_while_unwinding(cx: &Context) {
    // The device goes with the session, and behind it.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut device = open(cx, 1);
        let _session = enable(&mut device);
        resume_unwind(Box::new("in a traced section"));
    }));
    assert!(panicked.is_err());
    assert!(is_free(cx));
    // A leaked session is ended by the device.
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        let mut device = open(cx, 1);
        std::mem::forget(enable(&mut device));
        resume_unwind(Box::new("with a leaked session"));
    }));
    assert!(panicked.is_err());
    assert!(is_free(cx));
}
