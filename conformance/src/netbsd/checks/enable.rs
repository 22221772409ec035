//! `KCOV_IOC_ENABLE`: the order of its checks, and the mode that records nothing.

use super::{COVER_SIZE, MODES, mapped, open, sized};
use crate::check::{Context, checks};
use crate::checks::shared::{SENTINEL, mark};
use crate::raw::{Device, KCOV_MODE_NONE, KCOV_TRACE_CMP, KCOV_TRACE_PC, call, child, thread};
use kcov_sys::netbsd::KCOV_IOC_ENABLE;
use std::ptr::from_ref;

checks! {
    "enable.mode-is-read-through-a-pointer": mode_is_read_through_a_pointer,
    "enable.unreadable-argument-is-refused": unreadable_argument_is_refused,
    "enable.each-mode-in-turn": each_mode_in_turn,
    "enable.none-records-nothing": none_records_nothing,
    "enable.none-binds-the-thread": none_binds_the_thread,
    "enable.none-binds-the-device": none_binds_the_device,
    "enable.thread-comes-before-size": thread_comes_before_size,
    "enable.mode-comes-first": mode_comes_first,
    "enable.size-comes-before-mode": size_comes_before_mode,
    "enable.device-state-comes-before-mode": device_state_comes_before_mode,
    "enable.thread-comes-before-mode": thread_comes_before_mode,
}

/// An unknown mode.
const UNKNOWN: u32 = 3;

fn mode_is_read_through_a_pointer(cx: &Context) {
    let (device, map) = mapped(cx);
    let mode: i32 = 1;
    let address = from_ref(&mode).expose_provenance();
    assert_eq!(device.request(KCOV_IOC_ENABLE, address), Ok(()));
    map.reset();
    call();
    assert!(map.count() > 0);
}

fn unreadable_argument_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    cx.refused_by(&device, |device| device.request(KCOV_IOC_ENABLE, 0));
    // The argument is read first, and it is a pointer to the mode, not the mode.
    cx.refused_by(&open(cx), |device| device.request(KCOV_IOC_ENABLE, 1));
    device.enable(KCOV_TRACE_PC).expect("it is not enabled");
}

fn each_mode_in_turn(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for mode in [KCOV_MODE_NONE, KCOV_TRACE_PC, KCOV_TRACE_CMP] {
        for _ in 0..2 {
            assert_eq!(device.enable(mode), Ok(()), "mode {mode}");
            assert_eq!(device.disable(), Ok(()), "mode {mode}");
        }
    }
}

fn none_records_nothing(cx: &Context) {
    let (device, map) = mapped(cx);
    for before in MODES {
        // Whatever the mode was before.
        device.enable(*before).expect("enabled");
        device.disable().expect("disabled");
        mark(&map, SENTINEL);
        map.reset();
        assert_eq!(device.enable(KCOV_MODE_NONE), Ok(()));
        for _ in 0..100 {
            call();
        }
        assert_eq!(device.disable(), Ok(()));
        assert_eq!(map.count(), 0, "after mode {before}");
        let records = map.copy(1, map.words() - 1);
        assert!(records.iter().all(|&word| word == SENTINEL), "after mode {before}");
    }
}

fn none_binds_the_thread(cx: &Context) {
    let (device, other) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    device.enable(KCOV_MODE_NONE).expect("enabled");
    cx.refused_by(&other, |other| other.enable(KCOV_TRACE_PC));
}

fn none_binds_the_device(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_MODE_NONE).expect("enabled");
    cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
    cx.refused_by(&device, |device| thread(|| device.enable(KCOV_TRACE_PC)));
    cx.refused_by(&device, |device| child(|| device.enable(KCOV_MODE_NONE)));
}

/// Returns an enabled device and another one. The former makes this thread busy.
fn busy(cx: &Context) -> (Device, Device) {
    let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    first.enable(KCOV_TRACE_PC).expect("enabled");
    (first, second)
}

fn thread_comes_before_size(cx: &Context) {
    let (_first, _second) = busy(cx);
    cx.refused_by(&open(cx), |device| device.enable(KCOV_TRACE_PC));
}

fn mode_comes_first(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.enable(UNKNOWN));
    let (first, second) = busy(cx);
    cx.refused_by(&first, |first| first.enable(UNKNOWN));
    cx.refused_by(&second, |second| second.enable(UNKNOWN));
}

fn size_comes_before_mode(cx: &Context) {
    cx.refused_by(&open(cx), |device| device.enable(UNKNOWN));
}

fn device_state_comes_before_mode(cx: &Context) {
    let (first, _second) = busy(cx);
    cx.refused_by(&first, |first| first.enable(UNKNOWN));
    cx.refused_by(&first, |first| thread(|| first.enable(UNKNOWN)));
}

fn thread_comes_before_mode(cx: &Context) {
    let (_first, second) = busy(cx);
    cx.refused_by(&second, |second| second.enable(UNKNOWN));
}
