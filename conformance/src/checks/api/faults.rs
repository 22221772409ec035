//! Failures around a session: killed children, signals, too few file descriptors, forgotten guards
//! and panics.

use super::*;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, kill, sigaction};

/// Starts a process that repeats `body` until it is killed.
fn endless(mut body: impl FnMut()) -> Child<()> {
    Child::start(|| {
        loop {
            body();
        }
    })
}

fn end(child: Child<()>) {
    let killed = WaitStatus::Signaled(child.pid, Signal::SIGKILL, false);
    assert_eq!(child.kill(), killed, "it was killed and had nothing to complain about");
}

static SIGNALS: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_signal(_: i32) {
    SIGNALS.fetch_add(1, Ordering::Relaxed);
}

pub(crate) const CHECKS: &[Check] = &[
    on_crate("api.faults.killed-children", 4096, |cx, mut device| {
        let mut buffer = lend(&mut device);
        let mut noise = fastrand::Rng::with_seed(1);
        let before = descriptors();
        for round in 1..=cx.rounds(60) {
            buffer.reset();
            let endless = endless(|| {
                let session = buffer.enable().expect("enabled, after all that was killed before");
                call();
                assert!(!session.trace().is_empty());
                drop(session);
            });
            // The kill comes anywhere between the fork and the middle of some
            // session. In every second round it waits for the first session.
            let begun = || !left(&buffer).is_empty();
            assert!(round % 2 == 0 || wait_for(LONG, begun), "the child is traced");
            // On a single processor, yielding gives the child its time slice.
            (0..noise.u32(0..3)).for_each(|_| std::thread::yield_now());
            for step in 0..noise.u32(0..1 << 16) {
                std::hint::black_box(step);
            }
            end(endless);
            let trace = left(&buffer);
            assert_eq!(trace.iter().count(), trace.len());
            if round % 20 == 0 {
                let seen = seen_by_child(&mut buffer);
                assert!(!seen.is_empty());
                assert_eq!(addresses(&left(&buffer)), seen);
            }
        }
        assert_eq!(descriptors(), before, "no descriptor was lost");
        drop(device);
        assert!(is_free(cx));
    }),
    check("api.faults.signal-storm", |cx| {
        let action =
            SigAction::new(SigHandler::Handler(count_signal), SaFlags::empty(), SigSet::empty());
        // SAFETY: the handler only adds to an atomic, which is async-signal-safe.
        unsafe { sigaction(Signal::SIGUSR1, &action) }.expect("a handler");
        let parent = getpid();
        let storm = endless(|| kill(parent, Signal::SIGUSR1).expect("a signal"));
        let mut device = open(cx, 1 << 16);
        // A single processor delivers signals only when it switches back from the sender.
        let (wanted, mut sessions) = (cx.rounds(20), 0);
        while sessions < wanted || SIGNALS.load(Ordering::Relaxed) < wanted {
            let mut session = device.enable(TracePc).expect("a signal does not keep from enabling");
            session.reset();
            call();
            let trace = session.trace();
            let first: Vec<_> = trace.iter().collect();
            assert!(!first.is_empty());
            // Existing records stay, whatever the handler adds.
            assert_eq!(trace.iter().collect::<Vec<_>>(), first);
            let recorded = session.disable().expect("a signal does not keep from disabling");
            let all = recorded.trace();
            assert!(all.len() >= first.len());
            sessions += 1;
        }
        end(storm);
        println!("{sessions} sessions under {} signals", SIGNALS.load(Ordering::Relaxed));
        assert!(is_free(cx));
    }),
    on_crate("api.faults.no-descriptor-left", 1, |cx, mut device| {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit");
        // The lowest free number becomes the first one that the limit forbids.
        let lowest = std::fs::File::open("/dev/null").expect("a file");
        let lowest = rlim_t::try_from(std::os::fd::AsRawFd::as_raw_fd(&lowest)).expect("a number");
        setrlimit(Resource::RLIMIT_NOFILE, lowest, hard).expect("a lower limit");
        let refused = Device::builder().path(cx.device()).open();
        let used: Vec<_> = { of_a_call(enable(&mut device)).trace().iter().collect() };
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("the old limit");
        let error = fails(refused, Operation::Open, ErrorKind::DescriptorOutOfLimits);
        assert!(error.to_string().contains(&format!("errno {}", libc::EMFILE)), "{error}");
        assert!(!used.is_empty(), "an open device needs no further descriptor");
        drop(enable(&mut open(cx, 1)));
    }),
    check("api.faults.forgotten-guards", |cx| {
        // The thread leaks everything. Its end frees its tracing, but the device stays open.
        thread(|| {
            let mut device = open(cx, 1);
            std::mem::forget(enable(&mut device));
            std::mem::forget(device);
        });
        thread(|| {
            let mut device = open(cx, 1);
            assert!(!of_a_call(enable(&mut device)).trace().is_empty());
            std::mem::forget(device);
        });
        assert!(is_free(cx));
        // A child leaks everything at once when it ends.
        let mut device = open(cx, 4096);
        let mut buffer = lend(&mut device);
        for _ in 0..3 {
            child(|| {
                std::mem::forget(buffer.enable().expect("enabled in the child"));
                call();
            });
            assert!(!left(&buffer).is_empty());
        }
        drop(enable(&mut device));
    }),
    on_crate("api.faults.panic-in-a-forked-child", 4096, |cx, mut device| {
        let mut buffer = lend(&mut device);
        for _ in 0..3 {
            let (length, again) = child(|| {
                let panicked = catch_unwind(AssertUnwindSafe(|| {
                    let _session = buffer.enable().expect("enabled in the child");
                    call();
                    resume_unwind(Box::new("in a traced section"));
                }));
                assert!(panicked.is_err());
                let length = left(&buffer).len();
                drop(buffer.enable().expect("unwinding has disabled"));
                (length, is_free(cx))
            });
            assert!(length > 0 && again);
        }
    }),
    check("api.faults.dropped-while-unwinding", |cx| {
        // The device is dropped after the session.
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut device = open(cx, 1);
            let _session = enable(&mut device);
            resume_unwind(Box::new("in a traced section"));
        }));
        assert!(panicked.is_err());
        assert!(is_free(cx));
        // The device ends a leaked session.
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let mut device = open(cx, 1);
            std::mem::forget(enable(&mut device));
            resume_unwind(Box::new("with a leaked session"));
        }));
        assert!(panicked.is_err());
        assert!(is_free(cx));
    }),
];
