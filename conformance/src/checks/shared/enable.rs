//! `KCOV_ENABLE`.

use super::{COVER_SIZE, mapped, open, sized, while_other_is_enabled};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_CMP, KCOV_TRACE_PC, call};

checks! {
    "enable.current-thread": current_thread,
    "enable.again-after-disable": again_after_disable,
    "enable.modes-are-exclusive": modes_are_exclusive,
    "enable.other-mode-after-disable": other_mode_after_disable,
    "enable.through-duplicate": through_duplicate,
    "enable.before-sizing-is-refused": before_sizing_is_refused,
    "enable.already-enabled-is-refused": already_enabled_is_refused,
    "enable.already-enabled-through-duplicate-is-refused":
        already_enabled_through_duplicate_is_refused,
    "enable.enabled-by-other-thread-is-refused": enabled_by_other_thread_is_refused,
    "enable.busy-if-thread-already-enabled": busy_if_thread_already_enabled,
    "enable.unknown-mode-is-refused": unknown_mode_is_refused,
    "enable.refusal-leaves-thread-untraced": refusal_leaves_thread_untraced,
    "enable.count-is-kept": count_is_kept,
}

fn current_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn again_after_disable(cx: &Context) {
    let (device, map) = mapped(cx);
    for round in 0..100 {
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "round {round}");
        map.reset();
        call();
        assert!(map.count() > 0, "round {round}");
        assert_eq!(device.disable(), Ok(()), "round {round}");
    }
}

fn modes_are_exclusive(cx: &Context) {
    for (first, second) in [(KCOV_TRACE_PC, KCOV_TRACE_CMP), (KCOV_TRACE_CMP, KCOV_TRACE_PC)] {
        let (device, map) = mapped(cx);
        device.enable(first).expect("the first mode");
        assert!(device.enable(second).is_err(), "mode {second} beside {first}");
        let other = sized(cx, COVER_SIZE);
        assert!(other.enable(second).is_err(), "mode {second} on another device");
        map.reset();
        call();
        assert!(map.count() > 0, "mode {first} goes on");
        assert_eq!(map.load(1) < 8, first == KCOV_TRACE_CMP, "{:#x} in mode {first}", map.load(1));
        device.disable().expect("disabled");
    }
}

fn other_mode_after_disable(cx: &Context) {
    let (device, map) = mapped(cx);
    let mut shapes = Vec::new();
    for mode in [KCOV_TRACE_PC, KCOV_TRACE_CMP, KCOV_TRACE_PC] {
        assert_eq!(device.enable(mode), Ok(()), "mode {mode}");
        map.reset();
        call();
        let count = map.count();
        assert!(count > 0, "mode {mode}");
        // A comparison's type is a small number, a program counter is not.
        shapes.push(map.load(1) < 8);
        device.disable().expect("disabled");
    }
    assert_eq!(shapes, [false, true, false]);
}

fn through_duplicate(cx: &Context) {
    let (device, map) = mapped(cx);
    let duplicate = device.duplicate().expect("a duplicate");
    assert_eq!(duplicate.enable(KCOV_TRACE_PC), Ok(()));
    map.reset();
    call();
    assert!(map.count() > 0);
    assert_eq!(device.disable(), Ok(()), "one device, whichever descriptor");
}

fn before_sizing_is_refused(cx: &Context) {
    let device = open(cx);
    cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
    assert_eq!(device.init_trace(COVER_SIZE), Ok(()), "it is not enabled");
    let (other, map) = mapped(cx);
    assert_eq!(other.enable(KCOV_TRACE_PC), Ok(()), "the thread is not busy");
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn already_enabled_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
    device.disable().expect("it is enabled once");
}

fn already_enabled_through_duplicate_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused(device.duplicate().expect("a duplicate").enable(KCOV_TRACE_PC));
}

fn enabled_by_other_thread_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    while_other_is_enabled(&device, || {
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
    });
}

fn busy_if_thread_already_enabled(cx: &Context) {
    let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    first.enable(KCOV_TRACE_PC).expect("the first is enabled");
    cx.refused_by(&second, |second| second.enable(KCOV_TRACE_PC));
    first.disable().expect("disabled");
    second.enable(KCOV_TRACE_PC).expect("the second is enabled now");
}

fn unknown_mode_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for mode in [3, 16, 255, 1 << 30, u32::MAX] {
        cx.refused_by(&device, |device| device.enable(mode));
    }
}

fn refusal_leaves_thread_untraced(cx: &Context) {
    let (device, map) = mapped(cx);
    assert!(device.enable(1_u32 << 30).is_err());
    call();
    assert_eq!(map.count(), 0);
    assert!(device.disable().is_err(), "there is nothing to disable");
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
}

fn count_is_kept(cx: &Context) {
    const COUNT: u64 = 1000;
    let (device, map) = mapped(cx);
    map.store(0, COUNT);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert!(map.count() >= COUNT);
    device.disable().expect("disabled");
    let after = map.count();
    assert!(after >= COUNT);
    call();
    assert_eq!(map.count(), after, "disabling keeps it too");
}
