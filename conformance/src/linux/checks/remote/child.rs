//! Threads and processes started by a thread that collects remotely. The work that they cause is
//! collected, their own calls are not.

use super::*;

fn work() {
    vhost().work();
}

/// Starts a child that works once told to.
fn waits(go: &std::os::fd::OwnedFd) -> Child<()> {
    Child::start(|| {
        assert_eq!(read(go, &mut [0]), Ok(1));
        work();
    })
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("remote.child.own-calls-add-nothing", enabled, |_, _device, map| {
        let calls = || (0..100).for_each(|_| call());
        child(calls);
        thread(calls);
        assert_eq!(map.count(), 0);
    }),
    on_buffer("remote.child.may-be-traced", enabled, |cx, _device, _map| {
        let traced = || {
            let (local, map) = mapped(cx);
            local.enable(KCOV_TRACE_PC).map(|()| is_traced(&map))
        };
        assert_eq!(child(traced), Ok(true));
        assert_eq!(thread(traced), Ok(true));
    }),
    on_buffer("remote.child.may-collect-remotely-too", enabled, |cx, _device, _map| {
        let other = || {
            let device = sized(cx, COVER_SIZE);
            let enabled = device.remote_enable(&Remote::common(common() + (1 << 30)));
            enabled.and_then(|()| device.disable())
        };
        assert_eq!(child(other), Ok(()));
        assert_eq!(thread(other), Ok(()));
    }),
    on_buffer("remote.child.thread-inherits-common-handle", enabled, |_, _device, map| {
        thread(work);
        assert!(map.count() > 0);
    }),
    check("remote.child.every-thread-passes-its-handle-on", |cx| {
        thread(|| {
            let (_device, map) = enabled(cx);
            thread(work);
            assert!(map.count() > 0, "the first thread of the process has no handle");
        });
    }),
    on_buffer("remote.child.traced-thread-passes-its-handle-on", enabled, |cx, _device, map| {
        let local = sized(cx, COVER_SIZE);
        local.enable(KCOV_TRACE_PC).expect("enabled");
        let starts: [fn(); 2] = [|| thread(work), || child(work)];
        for start in starts {
            map.reset();
            start();
            assert!(map.count() > 0, "of what a traced thread has started");
        }
    }),
    on_buffer("remote.child.grandchild-inherits-common-handle", enabled, |_, _device, map| {
        child(|| child(work));
        assert!(map.count() > 0);
    }),
    check("remote.child.keeps-the-handle-if-its-request-has-none", |cx| {
        let (_device, map) = enabled(cx);
        for own in [Remote::default(), Remote::of(usb(1))] {
            map.reset();
            thread(|| {
                let _device = enabled_for(cx, &own);
                work();
            });
            assert!(map.count() > 0, "{own:x?}");
        }
    }),
    check("remote.child.started-before-has-no-handle", |cx| {
        let (go, goes) = pipe().expect("a pipe");
        let early = waits(&go);
        let (_device, map) = enabled(cx);
        assert_eq!(write(&goes, b"!"), Ok(1));
        early.end();
        assert_eq!(settled(&map), 0);
        child(work);
        assert!(map.count() > 0, "of one that is started now");
    }),
    on_buffer("remote.child.keeps-the-handle-that-is-disabled", enabled, |_, device, map| {
        let ((go, goes), (again, goes_again)) = (pipe().expect("a pipe"), pipe().expect("a pipe"));
        let (early, later) = (waits(&go), waits(&again));
        device.disable().expect("disabled");
        assert_eq!(write(&goes, b"!"), Ok(1));
        early.end();
        assert_eq!(settled(&map), 0, "nobody has the handle registered");
        device.remote_enable(&Remote::common(common())).expect("enabled again");
        assert_eq!(write(&goes_again, b"!"), Ok(1));
        later.end();
        assert!(map.count() > 0, "the child has it still");
    }),
];
