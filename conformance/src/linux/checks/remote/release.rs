//! When handles become free again, and whether a refusal leaves anything behind.

use super::{common, usb};
use crate::check::{Context, checks};
use crate::raw::{
    Device, KCOV_TRACE_PC, Remote, areas_of, call, child, kernel_memory_lost, thread,
};
use crate::system::checks::{COVER_SIZE, mapped, sized};

checks! {
    "remote.release.disable-ends-collection": disable_ends_collection,
    "remote.release.disable-frees-handles": disable_frees_handles,
    "remote.release.disable-by-other-thread-is-refused": disable_by_other_thread_is_refused,
    "remote.release.thread-exit-frees-handles": thread_exit_frees_handles,
    "remote.release.thread-exit-frees-both-devices": thread_exit_frees_both_devices,
    "remote.release.process-exit-frees-handles": process_exit_frees_handles,
    "remote.release.close-keeps-handles": close_keeps_handles,
    "remote.release.refusal-frees-handles": refusal_frees_handles,
    "remote.release.refusal-leaves-device-usable": refusal_leaves_device_usable,
    "remote.release.refusal-leaves-thread-free": refusal_leaves_thread_free,
    "remote.release.disable-by-forked-child-is-refused": disable_by_forked_child_is_refused,
    "remote.release.memory-is-freed": memory_is_freed,
    "remote.release.buffer-of-an-ended-thread-is-freed": buffer_of_an_ended_thread_is_freed,
}

fn both() -> Remote {
    Remote { handles: vec![usb(1), usb(2)], ..Remote::common(common()) }
}

fn enabled(cx: &Context) -> Device {
    let device = sized(cx, COVER_SIZE);
    device.remote_enable(&both()).expect("enabled");
    device
}

/// Whether the handles are free. Asks from a separate thread.
fn are_free(cx: &Context) -> bool {
    thread(|| sized(cx, COVER_SIZE).remote_enable(&both())).is_ok()
}

fn disable_ends_collection(cx: &Context) {
    let device = enabled(cx);
    assert_eq!(device.disable(), Ok(()));
    assert!(device.disable().is_err(), "it has been disabled");
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "it can be enabled in the other way");
}

fn disable_frees_handles(cx: &Context) {
    let device = enabled(cx);
    assert!(!are_free(cx));
    device.disable().expect("disabled");
    assert!(are_free(cx));
    assert_eq!(device.remote_enable(&both()), Ok(()));
}

fn disable_by_other_thread_is_refused(cx: &Context) {
    let device = enabled(cx);
    cx.refused_by(&device, |device| thread(|| device.disable()));
    assert!(!are_free(cx));
}

fn thread_exit_frees_handles(cx: &Context) {
    let device = thread(|| enabled(cx));
    assert!(are_free(cx));
    assert_eq!(device.remote_enable(&both()), Ok(()), "the device is free too");
}

fn thread_exit_frees_both_devices(cx: &Context) {
    let (local, remote) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    for round in 0..2 {
        let enabled = thread(|| [local.enable(KCOV_TRACE_PC), remote.remote_enable(&both())]);
        assert_eq!(enabled, [Ok(()); 2], "round {round}");
    }
    assert!(are_free(cx));
}

fn process_exit_frees_handles(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    let handles = both();
    let first = child(|| device.remote_enable(&handles));
    assert_eq!(first, Ok(()));
    assert_eq!(device.remote_enable(&handles), Ok(()));
}

fn close_keeps_handles(cx: &Context) {
    enabled(cx).close().expect("closed");
    cx.refused(thread(|| sized(cx, COVER_SIZE).remote_enable(&both())));
}

/// A request that is refused because of its last handle.
fn refused() -> Remote {
    Remote { common: 1 << 32, ..both() }
}

fn refusal_frees_handles(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    assert!(device.remote_enable(&refused()).is_err());
    assert!(are_free(cx));
}

fn refusal_leaves_device_usable(cx: &Context) {
    let (device, map) = mapped(cx);
    assert!(device.remote_enable(&refused()).is_err());
    assert_eq!(device.remote_enable(&both()), Ok(()), "the same, corrected");
    device.disable().expect("disabled");
    assert!(device.remote_enable(&refused()).is_err());
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn refusal_leaves_thread_free(cx: &Context) {
    let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    assert!(first.remote_enable(&refused()).is_err());
    assert!(first.disable().is_err(), "there is nothing to disable");
    assert_eq!(second.remote_enable(&both()), Ok(()));
}

fn disable_by_forked_child_is_refused(cx: &Context) {
    let device = enabled(cx);
    cx.refused_by(&device, |device| child(|| device.disable()));
    assert!(!are_free(cx));
}

fn memory_is_freed(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    // Each round has 64 handles, and a structure of half a KiB that contains them.
    const TIMES: usize = 3000;
    let all = Remote { handles: (0..64).map(usb).collect(), ..Remote::default() };
    let twice = Remote { handles: vec![usb(1), usb(1)], ..Remote::default() };
    let enabled = kernel_memory_lost(TIMES, 400, || {
        device.remote_enable(&all).expect("enabled");
        device.disable().expect("disabled");
    });
    assert!(enabled < 400, "{enabled} KiB more after enabling");
    // A refused request allocates its first handle and the structure.
    let refused = kernel_memory_lost(TIMES, 100, || {
        assert!(device.remote_enable(&twice).is_err(), "a handle twice");
    });
    assert!(refused < 100, "{refused} KiB more after refusals");
    // The thread is busy, so only the structure is allocated.
    device.remote_enable(&Remote::default()).expect("enabled");
    let second = sized(cx, COVER_SIZE);
    let busy = kernel_memory_lost(TIMES, 400, || {
        assert!(second.remote_enable(&all).is_err(), "the thread is busy");
    });
    assert!(busy < 400, "{busy} KiB more after refusals to a busy thread");
}

fn buffer_of_an_ended_thread_is_freed(cx: &Context) {
    let before = areas_of("kcov_ioctl");
    for _ in 0..10 {
        thread(|| drop(enabled(cx)));
    }
    // There are fewer if an earlier one was freed late.
    assert!(areas_of("kcov_ioctl") <= before);
}
