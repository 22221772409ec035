//! Threads and processes started by a thread that collects remotely. The work that they cause is
//! collected, their own calls are not.

use super::{common, usb};
use crate::check::{Context, checks};
use crate::raw::{Child, Device, KCOV_TRACE_PC, Map, Remote, Vhost, call, child, settled, thread};
use crate::system::checks::{COVER_SIZE, mapped, records, sized};
use nix::unistd::{pipe, read, write};

checks! {
    "remote.child.own-calls-add-nothing": own_calls_add_nothing,
    "remote.child.may-be-traced": may_be_traced,
    "remote.child.may-collect-remotely-too": may_collect_remotely_too,
    "remote.child.thread-inherits-common-handle": thread_inherits_common_handle,
    "remote.child.every-thread-passes-its-handle-on": every_thread_passes_its_handle_on,
    "remote.child.traced-thread-passes-its-handle-on": traced_thread_passes_its_handle_on,
    "remote.child.grandchild-inherits-common-handle": grandchild_inherits_common_handle,
    "remote.child.keeps-the-handle-if-its-request-has-none":
        keeps_the_handle_if_its_request_has_none,
    "remote.child.started-before-has-no-handle": started_before_has_no_handle,
    "remote.child.keeps-the-handle-that-is-disabled": keeps_the_handle_that_is_disabled,
}

fn enabled(cx: &Context) -> (Device, Map) {
    let (device, map) = mapped(cx);
    device.remote_enable(&Remote::common(common())).expect("enabled");
    (device, map)
}

fn work() {
    Vhost::new().expect("a device that this process owns").work();
}

fn own_calls_add_nothing(cx: &Context) {
    let (_device, map) = enabled(cx);
    let calls = || (0..100).for_each(|_| call());
    child(calls);
    thread(calls);
    assert_eq!(map.count(), 0);
}

fn may_be_traced(cx: &Context) {
    let (_device, _map) = enabled(cx);
    let traced = || {
        let (local, map) = mapped(cx);
        local.enable(KCOV_TRACE_PC).map(|()| records(&map))
    };
    assert_eq!(child(traced), Ok(true));
    assert_eq!(thread(traced), Ok(true));
}

fn may_collect_remotely_too(cx: &Context) {
    let (_device, _map) = enabled(cx);
    let other = || {
        let device = sized(cx, COVER_SIZE);
        let enabled = device.remote_enable(&Remote::common(common() + (1 << 30)));
        enabled.and_then(|()| device.disable())
    };
    assert_eq!(child(other), Ok(()));
    assert_eq!(thread(other), Ok(()));
}

fn thread_inherits_common_handle(cx: &Context) {
    let (_device, map) = enabled(cx);
    thread(work);
    assert!(map.count() > 0);
}

fn every_thread_passes_its_handle_on(cx: &Context) {
    thread(|| {
        let (_device, map) = enabled(cx);
        thread(work);
        assert!(map.count() > 0, "the first thread of the process has no handle");
    });
}

fn traced_thread_passes_its_handle_on(cx: &Context) {
    let (_device, map) = enabled(cx);
    let local = sized(cx, COVER_SIZE);
    local.enable(KCOV_TRACE_PC).expect("enabled");
    let starts: [fn(); 2] = [|| thread(work), || child(work)];
    for start in starts {
        map.reset();
        start();
        assert!(map.count() > 0, "of what a traced thread has started");
    }
}

fn keeps_the_handle_if_its_request_has_none(cx: &Context) {
    let (_device, map) = enabled(cx);
    for own in [Remote::default(), Remote::of(usb(1))] {
        map.reset();
        thread(|| {
            let device = sized(cx, COVER_SIZE);
            device.remote_enable(&own).expect("enabled");
            work();
        });
        assert!(map.count() > 0, "{own:x?}");
    }
}

fn grandchild_inherits_common_handle(cx: &Context) {
    let (_device, map) = enabled(cx);
    child(|| child(work));
    assert!(map.count() > 0);
}

/// Starts a child that works once told to.
fn waits(go: &std::os::fd::OwnedFd) -> Child<()> {
    Child::start(|| {
        assert_eq!(read(go, &mut [0]), Ok(1));
        work();
    })
}

fn started_before_has_no_handle(cx: &Context) {
    let (go, goes) = pipe().expect("a pipe");
    let early = waits(&go);
    let (_device, map) = enabled(cx);
    assert_eq!(write(&goes, b"!"), Ok(1));
    early.end();
    assert_eq!(settled(&map), 0);
    child(work);
    assert!(map.count() > 0, "of one that is started now");
}

fn keeps_the_handle_that_is_disabled(cx: &Context) {
    let (device, map) = enabled(cx);
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
}
