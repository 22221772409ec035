//! Descriptors: closing, duplicating and passing them on.

use super::{COVER_SIZE, mapped, sized};
use crate::check::{Context, checks};
use crate::raw::{Gate, KCOV_TRACE_PC, call, pass_descriptor};

checks! {
    succeeds_in_every_state,
    while_enabled_keeps_tracing,
    while_enabled_keeps_the_thread_busy,
    by_other_thread_changes_nothing,
    one_of_two_descriptors,
    passed_descriptor_is_the_same_device,
}

fn succeeds_in_every_state(cx: &Context) {
    assert_eq!(super::open(cx).close(), Ok(()));
    assert_eq!(sized(cx, COVER_SIZE).close(), Ok(()));
    let (device, _map) = mapped(cx);
    assert_eq!(device.close(), Ok(()));
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(device.close(), Ok(()));
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
    cx.refused(sized(cx, COVER_SIZE).enable(KCOV_TRACE_PC));
}

fn by_other_thread_changes_nothing(cx: &Context) {
    let (device, map) = mapped(cx);
    let kept = device.duplicate().expect("a duplicate");
    let (enabled, closed) = (Gate::default(), Gate::default());
    std::thread::scope(|scope| {
        let traced = scope.spawn(|| {
            kept.enable(KCOV_TRACE_PC).expect("enabled");
            enabled.open();
            closed.wait();
            map.reset();
            call();
            map.count()
        });
        enabled.wait();
        device.close().expect("closed");
        closed.open();
        assert!(traced.join().expect("the thread") > 0);
    });
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
