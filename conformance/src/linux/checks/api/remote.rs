//! Coverage of background work on Linux.

pub(super) mod late;
pub(super) mod sections;

use super::*;
use crate::linux::checks::remote::vhost;
use kcov::remote::Mark;
use kcov::remote::RemoteSession;
use kcov::remote::linux::{CommonHandle, GlobalHandle, Remote};
use std::num::NonZeroU32;

fn number(instance: u32) -> Remote {
    Remote::new().common(CommonHandle::new(NonZeroU32::new(instance).expect("not 0")))
}

/// Makes a worker run sections for this thread's common handle.
fn work() {
    vhost().work();
}

/// The records since a mark of this session.
#[track_caller]
fn since<D: Owner>(session: &RemoteSession<TracePc, D>, mark: Mark) -> Trace<'_, TracePc> {
    session.since(mark).expect("a mark of this session")
}

/// Waits for this many records since a mark of this session.
#[track_caller]
fn wait<D: Owner>(
    session: &RemoteSession<TracePc, D>,
    mark: Mark,
    records: usize,
) -> Trace<'_, TracePc> {
    session.wait(mark, records, deadline()).expect("a mark of this session")
}

/// Asserts that the session collects a worker's sections for this thread.
#[track_caller]
fn collects(session: &RemoteSession<TracePc, &mut Device>) {
    let mark = session.mark();
    work();
    assert!(!wait(session, mark, 1).is_empty(), "the worker's records");
}

pub(crate) const CHECKS: &[Check] = &[
    check("api.remote.handle-is-in-use", |cx| {
        let (mut first, mut second) = (open(cx, 1), open(cx, 1));
        let _session = first.enable_remote(TracePc, &number(7)).expect("enabled");
        let refused = crate::raw::thread(|| kind(second.enable_remote(TracePc, &number(7))));
        assert_eq!(refused, ErrorKind::HandleInUse);
        let twice = Remote::new().global(GlobalHandle::usb(9)).global(GlobalHandle::usb(9));
        let refused = crate::raw::thread(|| kind(second.enable_remote(TracePc, &twice)));
        assert_eq!(refused, ErrorKind::HandleInUse);
        crate::raw::thread(|| {
            drop(second.enable_remote(TracePc, &number(8)).expect("another handle"));
        });
    }),
    on_crate("api.remote.handle-is-released-on-drop", 4096, |cx, mut device| {
        for _ in 0..3 {
            let session = device.enable_remote(TracePc, &number(7)).expect("enabled");
            collects(&session);
            drop(session);
            let session = device.enable_remote(TracePc, &number(7)).expect("enabled");
            collects(&session);
            session.disable().expect("disabled");
        }
        std::mem::forget(device.enable_remote(TracePc, &number(7)).expect("enabled"));
        drop(device);
        let mut device = open(cx, 4096);
        collects(&device.enable_remote(TracePc, &number(7)).expect("released with the device"));
    }),
    on_crate("api.remote.handle-is-in-use-elsewhere", 1, |cx, mut device| {
        let _session = device.enable_remote(TracePc, &number(7)).expect("enabled");
        let refused: String = child(|| {
            let mut device = open(cx, 1);
            let refused = device.enable_remote(TracePc, &number(7)).expect_err("in use");
            format!("{:?}", refused.kind())
        });
        assert_eq!(refused, "HandleInUse");
    }),
    check("api.remote.unknown-subsystem-is-refused", |cx| {
        let unknown = Remote::new().global(GlobalHandle::from_raw(0xfe << 56 | 1));
        let mut device = open(cx, 4096);
        assert_eq!(kind(device.enable_remote(TracePc, &unknown)), ErrorKind::UnknownSubsystem);
        collects(&device.enable_remote(TracePc, &number(7)).expect("a correct one still works"));
    }),
    check("api.remote.second-remote-session", |cx| {
        let (mut first, mut second) = (open(cx, 4096), open(cx, 4096));
        let session = first.enable_remote(TracePc, &number(7)).expect("enabled");
        collects(&session);
        assert_eq!(kind(second.enable_remote(TracePc, &number(8))), ErrorKind::AlreadyEnabled);
        collects(&session);
        drop(session);
        collects(&second.enable_remote(TracePc, &number(8)).expect("one after the other"));
    }),
    check("api.remote.local-and-remote-at-once", |cx| {
        let (mut local, mut remote) = (open(cx, 1 << 16), open(cx, 4096));
        let mut local_session = enable(&mut local);
        let remote_session = remote.enable_remote(TracePc, &number(7)).expect("both at once");
        local_session.reset();
        call();
        assert!(!local_session.trace().is_empty(), "this thread's records");
        assert!(remote_session.trace().is_empty(), "no section has run");
        collects(&remote_session);
        drop(local_session);
        collects(&remote_session);
    }),
    check("api.remote.local-and-remote-are-refused", |cx| {
        let (mut local, mut remote) = (open(cx, 1), open(cx, 1));
        let session = enable(&mut local);
        assert_eq!(kind(remote.enable_remote(TracePc, &number(7))), ErrorKind::AlreadyEnabled);
        drop(session);
        drop(remote.enable_remote(TracePc, &number(7)).expect("one after the other"));
    }),
    check("api.remote.helper-thread", |cx| {
        let (mut local, mut remote) = (open(cx, 4096), open(cx, 4096));
        let mut local_session = enable(&mut local);
        let (enabled, go_on) = std::sync::mpsc::channel();
        let (done, stop) = std::sync::mpsc::channel::<()>();
        std::thread::scope(|scope| {
            let helper = scope.spawn(move || {
                let session = remote.enable_remote(TracePc, &number(7)).expect("enabled");
                enabled.send(()).expect("the first thread listens");
                // Ends when the other side is dropped, including by a panic.
                let _ = stop.recv();
                let before = session.trace().len();
                collects(&session);
                before
            });
            go_on.recv().expect("the helper has enabled");
            local_session.reset();
            call();
            assert!(!local_session.trace().is_empty());
            drop(done);
            assert_eq!(helper.join().expect("the helper"), 0, "no section has run");
        });
        drop(local_session);
        assert!(is_free(cx));
    }),
    on_crate("api.remote.waiting-has-a-limit", 4096, |_, mut device| {
        let session = device.enable_remote(TracePc, &number(7)).expect("enabled");
        let mark = session.mark();
        let wait = |records, until| session.wait(mark, records, until).expect("its mark");
        let soon = || Instant::now() + Duration::from_millis(50);
        let limit = soon();
        assert!(wait(1, limit).is_empty());
        assert!(Instant::now() >= limit);
        assert!(wait(1, Instant::now()).is_empty());
        // Records that are already there cause no wait.
        assert!(wait(0, deadline()).is_empty());
        collects(&session);
        assert!(!wait(1, Instant::now()).is_empty());
        assert!(!wait(1, deadline()).is_empty());
        // If fewer records come than requested, the wait ends at the limit and returns those.
        let limit = soon();
        assert!(!wait(usize::MAX, limit).is_empty());
        assert!(Instant::now() >= limit);
    }),
];
