//! Closing, duplicating and passing on file descriptors.

use super::{COVER_SIZE, mapped, other_stays_traced, sized};
use crate::check::{Context, checks};
use crate::raw::{Device, KCOV_TRACE_PC, call, child, pass_descriptor, thread};
use crate::system::enable_freed;
use nix::unistd::dup2;

checks! {
    while_enabled_keeps_tracing,
    while_enabled_keeps_the_thread_busy,
    while_enabled_ends_with_the_thread,
    by_other_thread_changes_nothing,
    one_of_two_descriptors,
    passed_descriptor_is_the_same_device,
    other_number_of_a_descriptor,
    process_may_end_in_every_state,
}

fn while_enabled_keeps_tracing(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn while_enabled_keeps_the_thread_busy(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    cx.refused_by(&sized(cx, COVER_SIZE), |device| device.enable(KCOV_TRACE_PC));
}

fn while_enabled_ends_with_the_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    thread(move || {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
    });
    map.reset();
    for _ in 0..100 {
        call();
    }
    assert_eq!(map.count(), 0);
    assert_eq!(enable_freed(&sized(cx, COVER_SIZE), KCOV_TRACE_PC), Ok(()));
}

fn by_other_thread_changes_nothing(cx: &Context) {
    let (device, map) = mapped(cx);
    let kept = device.duplicate().expect("a duplicate");
    let close = || device.close().expect("closed");
    other_stays_traced(&map, || kept.enable(KCOV_TRACE_PC), close);
}

fn one_of_two_descriptors(cx: &Context) {
    let (device, map) = mapped(cx);
    let duplicate = device.duplicate().expect("a duplicate");
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    map.reset();
    call();
    assert!(map.count() > 0);
    assert_eq!(duplicate.disable(), Ok(()));
}

fn passed_descriptor_is_the_same_device(cx: &Context) {
    let (device, map) = mapped(cx);
    let passed = pass_descriptor(&device);
    passed.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    call();
    assert!(map.count() > 0, "the buffer is the first descriptor's");
    let again = passed.map(COVER_SIZE).expect("the size is the first descriptor's");
    assert_eq!(again.load(1), map.load(1));
    assert_eq!(device.disable(), Ok(()));
}

fn other_number_of_a_descriptor(cx: &Context) {
    let (device, map) = mapped(cx);
    let mut moved = std::fs::File::open("/dev/null").expect("a descriptor").into();
    dup2(&device, &mut moved).expect("dup2");
    device.close().expect("closed");
    let moved = Device::from(moved);
    moved.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    call();
    assert!(map.count() > 0);
    moved.disable().expect("disabled");
    assert_eq!(moved.close(), Ok(()));
}

fn process_may_end_in_every_state(cx: &Context) {
    // The end of the child must clean up what the child leaves open, mapped or enabled.
    child(|| std::mem::forget(super::open(cx)));
    child(|| std::mem::forget(sized(cx, COVER_SIZE)));
    child(|| std::mem::forget(mapped(cx)));
    child(|| {
        let (device, map) = mapped(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        std::mem::forget((device, map));
    });
    child(|| {
        let (device, map) = mapped(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
        std::mem::forget(map);
    });
    // The device of a parent outlives the child.
    let device = sized(cx, COVER_SIZE);
    child(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
    assert_eq!(enable_freed(&device, KCOV_TRACE_PC), Ok(()));
}
