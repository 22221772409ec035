//! `KCOV_DISABLE`.

use super::{COVER_SIZE, mapped, open, sized, while_other_is_enabled};
use crate::check::{Context, checks};
use crate::raw::{Device, KCOV_TRACE_PC, call, child, thread};

checks! {
    "disable.stops-collection": stops_collection,
    "disable.lets-other-thread-enable": lets_other_thread_enable,
    "disable.through-duplicate": through_duplicate,
    "disable.before-sizing-is-refused": before_sizing_is_refused,
    "disable.not-enabled-is-refused": not_enabled_is_refused,
    "disable.second-time-is-refused": second_time_is_refused,
    "disable.other-device-is-refused": other_device_is_refused,
    "disable.other-thread-is-refused": other_thread_is_refused,
    "disable.device-of-other-traced-thread-is-refused": device_of_other_traced_thread_is_refused,
    "disable.forked-child-is-refused": forked_child_is_refused,
}

fn stops_collection(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(device.disable(), Ok(()));
    map.reset();
    for _ in 0..100 {
        call();
    }
    assert_eq!(map.count(), 0);
}

fn lets_other_thread_enable(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.disable().expect("disabled");
    thread(|| {
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        map.reset();
        call();
        assert!(map.count() > 0);
    });
}

fn through_duplicate(cx: &Context) {
    let (device, map) = mapped(cx);
    let duplicate = device.duplicate().expect("a duplicate");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(duplicate.disable(), Ok(()));
    map.reset();
    call();
    assert_eq!(map.count(), 0);
}

fn before_sizing_is_refused(cx: &Context) {
    cx.refused_by(&open(cx), Device::disable);
}

fn not_enabled_is_refused(cx: &Context) {
    cx.refused_by(&sized(cx, COVER_SIZE), Device::disable);
}

fn second_time_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.disable().expect("disabled");
    cx.refused_by(&device, Device::disable);
}

fn other_device_is_refused(cx: &Context) {
    let (device, other) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&other, Device::disable);
    device.disable().expect("the first is still enabled");
}

fn other_thread_is_refused(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| thread(|| device.disable()));
    map.reset();
    call();
    assert!(map.count() > 0, "it is still enabled");
}

fn device_of_other_traced_thread_is_refused(cx: &Context) {
    let (device, mine) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    while_other_is_enabled(&device, || {
        // Being traced gives this thread no right over another thread's device.
        mine.enable(KCOV_TRACE_PC).expect("this thread has a device of its own");
        cx.refused_by(&device, Device::disable);
        assert_eq!(mine.disable(), Ok(()), "which stays enabled");
    });
}

fn forked_child_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| child(|| device.disable()));
    device.disable().expect("it is still enabled");
}
