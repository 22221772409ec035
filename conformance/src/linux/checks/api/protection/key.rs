//! Buffers with a memory protection key. The kernel refuses an access on behalf of a thread that
//! lacks the right itself, so a system call shows the thread's rights.

use super::{buffer, builder};
use crate::check::{Context, checks};
use crate::checks::api::{enable, kind, lend, records};
use crate::raw::{Gate, accessible, call, child, give_usual_key, thread};
use kcov::{Builder, Device, ErrorKind, Operation};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, raise, sigaction};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};

checks! {
    "api.protection.key.stray-stores-between-sessions": stray_stores_between_sessions,
    "api.protection.key.stray-stores-during-a-session": stray_stores_during_a_session,
    "api.protection.key.records-are-those-of-any-device": records_are_those_of_any_device,
    "api.protection.key.forked": forked,
    "api.protection.key.older-threads": older_threads,
    "api.protection.key.signal-handlers": signal_handlers,
    "api.protection.key.recovers-with-its-key": recovers_with_its_key,
    "api.protection.key.given-back-with-the-device": given_back_with_the_device,
    "api.protection.key.refused-where-there-are-none": refused_where_there_are_none,
}

/// Whether the calling thread may read, and whether it may write.
const READ_ONLY: (bool, bool) = (true, false);
const NOTHING: (bool, bool) = (false, false);

/// A builder of a buffer with a key.
fn keyed(builder: Builder) -> Builder {
    // SAFETY: checks read traces in threads that enabled or lent the device, or that started later.
    // The only other reader thread and the only signal handler first ask for the right.
    unsafe { builder.write_protected_by_key() }
}

fn open(cx: &Context) -> Device {
    keyed(builder(cx)).open().expect("it opens")
}

/// Whether a process that runs `body` dies of a forbidden access.
fn dies(body: impl FnOnce()) -> bool {
    // SAFETY: the check is single-threaded, so no other thread holds a lock.
    match unsafe { fork() }.expect("a child") {
        ForkResult::Parent { child } => match waitpid(child, None).expect("its end") {
            WaitStatus::Signaled(_, Signal::SIGSEGV, _) => true,
            WaitStatus::Exited(_, 0) => false,
            other => panic!("{other:?}"),
        },
        ForkResult::Child => {
            body();
            // SAFETY: `_exit` skips the exit handlers, which belong to the parent.
            unsafe { libc::_exit(0) }
        }
    }
}

/// A stray store, as by a traced program that does not know whose memory this is.
fn store(address: usize) {
    // SAFETY: this is a word of the buffer, which is only accessed atomically.
    unsafe { AtomicU64::from_ptr(address as *mut u64) }.store(0, Ordering::Relaxed);
}

fn stray_stores_between_sessions(cx: &Context) {
    let plain = builder(cx).open().expect("it opens");
    assert!(!dies(|| store(buffer().0)), "a device that is not protected");
    drop(plain);
    let mut device = open(cx);
    let (start, end) = buffer();
    for _ in 0..2 {
        assert_eq!((accessible(start), accessible(end - 1)), (READ_ONLY, READ_ONLY));
        assert!(dies(|| store(start)) && dies(|| store(end - 8)));
        records(&mut device);
    }
    drop(enable(&mut device));
    assert_eq!(accessible(start), READ_ONLY);
}

fn stray_stores_during_a_session(cx: &Context) {
    let mut device = open(cx);
    let (start, end) = buffer();
    let mut lent = lend(&mut device);
    assert!(dies(|| {
        let _session = lent.enable().expect("enabled in the child");
        store(start);
    }));
    let mut session = enable(&mut device);
    for _ in 0..2 {
        let before = session.trace().len();
        assert_eq!((accessible(start), accessible(end - 1)), (READ_ONLY, READ_ONLY));
        let after = session.trace().len();
        assert!(after > before, "asking is recorded");
        session.reset();
        assert!(session.trace().len() < after);
    }
    assert_eq!(accessible(start), READ_ONLY);
    assert!(!session.disable().expect("disabled").is_empty());
}

fn records_are_those_of_any_device(cx: &Context) {
    const ROUNDS: usize = 64;
    let mut plain = builder(cx).open().expect("it opens");
    let mut keyed = open(cx);
    let one = |device: &mut Device| -> Vec<u64> {
        let mut session = enable(device);
        // Faults in the pages that this code uses.
        call();
        session.reset();
        call();
        session.disable().expect("disabled").iter().map(u64::from).collect()
    };
    // An interrupt may change the records of some rounds.
    let same = (0..ROUNDS).filter(|_| one(&mut plain) == one(&mut keyed)).count();
    assert!(same >= ROUNDS / 4, "{same} of {ROUNDS} rounds");
}

fn forked(cx: &Context) {
    let mut device = open(cx);
    let (start, _) = buffer();
    let mut lent = lend(&mut device);
    for _ in 0..2 {
        lent.reset().expect("reset");
        assert_eq!((accessible(start), lent.trace().len()), (READ_ONLY, 0));
        let (count, allowed) = child(|| {
            let session = lent.enable().expect("enabled in the child");
            call();
            (session.disable().expect("disabled").len(), accessible(start))
        });
        assert_eq!((accessible(start), lent.trace().len()), (READ_ONLY, count));
        assert!(count > 0 && allowed == READ_ONLY);
    }
}

fn older_threads(cx: &Context) {
    let jobs: [fn(&mut Device); 4] = [
        |device| records(device),
        |device| {
            let mut lent = lend(device);
            lent.reset().expect("reset");
            assert!(lent.trace().is_empty());
        },
        |device| assert!(device.is_intact()),
        |device| device.allow_reading(),
    ];
    let gates = jobs.map(|_| Gate::default());
    let place = Mutex::new(None);
    std::thread::scope(|scope| {
        let start = |(job, gate): (fn(&mut Device), _)| {
            let place = &place;
            scope.spawn(move || {
                Gate::wait(gate);
                let mut place = place.lock().expect("the place");
                let device = place.as_mut().expect("the device");
                let (start, _) = buffer();
                let before = accessible(start);
                job(device);
                (before, accessible(start))
            })
        };
        let threads: Vec<_> = jobs.into_iter().zip(&gates).map(start).collect();
        // Releases the threads even if the check fails.
        let _open: Vec<_> = gates.iter().map(Gate::open_at_end).collect();
        let device = keyed(builder(cx)).open();
        *place.lock().expect("the place") = Some(device.expect("it opens"));
        for (gate, thread) in gates.iter().zip(threads) {
            gate.open();
            assert_eq!(thread.join().expect("the thread ends well"), (NOTHING, READ_ONLY));
        }
    });
    assert_eq!(thread(|| accessible(buffer().0)), READ_ONLY, "a thread that was started later");
}

static DEVICE: AtomicPtr<Device> = AtomicPtr::new(std::ptr::null_mut());
static HANDLED: AtomicBool = AtomicBool::new(false);

extern "C" fn ask(_: i32) {
    // SAFETY: the check has stored a device that outlives its signal.
    let device = unsafe { &*DEVICE.load(Ordering::Relaxed) };
    let (start, _) = buffer();
    let before = accessible(start);
    device.allow_reading();
    HANDLED.store((before, accessible(start)) == (NOTHING, READ_ONLY), Ordering::Relaxed);
}

fn signal_handlers(cx: &Context) {
    let mut device = open(cx);
    let (start, _) = buffer();
    let action = SigAction::new(SigHandler::Handler(ask), SaFlags::empty(), SigSet::empty());
    // SAFETY: this thread raises the signal itself, between two statements, so the handler may do
    // anything that a function may.
    unsafe { sigaction(Signal::SIGUSR1, &action) }.expect("a handler");
    DEVICE.store(&raw mut device, Ordering::Relaxed);
    raise(Signal::SIGUSR1).expect("a signal");
    assert!(HANDLED.load(Ordering::Relaxed));
    assert_eq!(accessible(start), READ_ONLY);
    records(&mut device);
}

fn recovers_with_its_key(cx: &Context) {
    let mut device = open(cx);
    let (start, end) = buffer();
    let (address, bytes) = (start as *mut libc::c_void, end - start);
    assert!(device.is_intact() && accessible(start) == READ_ONLY);
    // SAFETY: this imitates a stray call of a traced program. No session is enabled, and the check
    // recovers the device afterwards.
    let done = unsafe { give_usual_key(address, bytes) };
    assert_eq!((done, accessible(start)), (Ok(()), (true, true)), "the key of all other memory");
    let mut device = device.recover().expect("recovered");
    assert_eq!((accessible(start), accessible(end - 1)), (READ_ONLY, READ_ONLY));
    records(&mut device);

    let (prot, over) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE | libc::MAP_FIXED);
    // SAFETY: as above.
    let mapped = unsafe { libc::mmap(address, bytes, prot, over | libc::MAP_ANONYMOUS, -1, 0) };
    assert_eq!(mapped, address);
    let mut device = device.recover().expect("recovered");
    let (start, end) = buffer();
    assert_eq!((accessible(start), accessible(end - 1)), (READ_ONLY, READ_ONLY));
    records(&mut device);
}

fn given_back_with_the_device(cx: &Context) {
    for _ in 0..100 {
        drop(open(cx));
    }
    // A process has 15 keys besides the default key.
    let devices: Vec<_> = (0..15).map(|_| open(cx)).collect();
    let error = keyed(builder(cx)).open().expect_err("no key is left");
    let expected = (Operation::AllocateKey, ErrorKind::ProtectionKeysInUse);
    assert_eq!((error.operation(), error.kind()), expected, "{error}");
    drop(devices);
    records(&mut open(cx));
}

fn refused_where_there_are_none(cx: &Context) {
    let by_key = || keyed(builder(cx));
    let error = by_key().open().expect_err("there are none");
    let expected = (Operation::AllocateKey, ErrorKind::NoProtectionKeys);
    assert_eq!((error.operation(), error.kind()), expected, "{error}");
    assert!(error.to_string().contains("use `Builder::write_protected`"), "{error}");
    assert_eq!(kind(keyed(builder(cx).write_protected()).open()), expected.1);
    let mut device = by_key().write_protected().open().expect("the later one counts");
    assert_eq!(accessible(buffer().0), READ_ONLY);
    records(&mut device);
}
