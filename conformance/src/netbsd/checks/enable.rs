//! `KCOV_IOC_SETBUFSIZE`, `KCOV_IOC_ENABLE` and `KCOV_IOC_DISABLE`.

use super::*;
use kcov_sys::netbsd::{
    KCOV_BUF_MIN_ENTRIES, KCOV_IOC_DISABLE, KCOV_IOC_ENABLE, KCOV_IOC_SETBUFSIZE,
};
use std::ptr::from_ref;

const UNKNOWN: u32 = 3;

/// Returns an enabled device and another one. The former makes this thread busy.
fn busy(cx: &Context) -> (Device, Device) {
    (enabled(cx, KCOV_TRACE_PC), sized(cx, COVER_SIZE))
}

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("enable.mode-is-read-through-a-pointer", mapped, |_, device, map| {
        let mode: i32 = 1;
        let address = from_ref(&mode).expose_provenance();
        assert_eq!(device.request(KCOV_IOC_ENABLE, address), Ok(()));
        assert!(is_traced(&map));
    }),
    on_device("enable.unreadable-argument-is-refused", usual, |cx, device| {
        cx.refused_by(&device, |device| device.request(KCOV_IOC_ENABLE, 0));
        // The argument is read first, and it is a pointer to the mode, not the mode.
        cx.refused_by(&open(cx), |device| device.request(KCOV_IOC_ENABLE, 1));
        device.enable(KCOV_TRACE_PC).expect("it is not enabled");
    }),
    on_device("enable.each-mode-in-turn", usual, |_, device| {
        for mode in [KCOV_MODE_NONE, KCOV_TRACE_PC, KCOV_TRACE_CMP] {
            for _ in 0..2 {
                assert_eq!(device.enable(mode), Ok(()), "mode {mode}");
                assert_eq!(device.disable(), Ok(()), "mode {mode}");
            }
        }
    }),
    on_buffer("enable.none-records-nothing", mapped, |_, device, map| {
        for before in MODES {
            // Whatever the mode was before.
            device.enable(*before).expect("enabled");
            device.disable().expect("disabled");
            mark_from(&map, 0);
            assert_eq!(device.enable(KCOV_MODE_NONE), Ok(()));
            (0..100).for_each(|_| call());
            assert_eq!(device.disable(), Ok(()));
            assert!(map.count() == 0 && is_marked_from(&map, 1), "after mode {before}");
        }
    }),
    check("enable.none-binds-the-thread", |cx| {
        let (device, other) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        device.enable(KCOV_MODE_NONE).expect("enabled");
        cx.refused_by(&other, |other| other.enable(KCOV_TRACE_PC));
    }),
    check("enable.none-binds-the-device", |cx| {
        let device = enabled(cx, KCOV_MODE_NONE);
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        cx.refused_by(&device, |device| thread(|| device.enable(KCOV_TRACE_PC)));
        cx.refused_by(&device, |device| child(|| device.enable(KCOV_MODE_NONE)));
    }),
    check("enable.thread-comes-before-size", |cx| {
        let (_first, _second) = busy(cx);
        cx.refused_by(&open(cx), |device| device.enable(KCOV_TRACE_PC));
    }),
    check("enable.mode-comes-first", |cx| {
        cx.refused_by(&open(cx), |device| device.enable(UNKNOWN));
        let (first, second) = busy(cx);
        cx.refused_by(&first, |first| first.enable(UNKNOWN));
        cx.refused_by(&second, |second| second.enable(UNKNOWN));
    }),
    check("enable.size-comes-before-mode", |cx| {
        cx.refused_by(&open(cx), |device| device.enable(UNKNOWN));
    }),
    check("enable.device-state-comes-before-mode", |cx| {
        let (first, _second) = busy(cx);
        cx.refused_by(&first, |first| first.enable(UNKNOWN));
        cx.refused_by(&first, |first| thread(|| first.enable(UNKNOWN)));
    }),
    check("enable.thread-comes-before-mode", |cx| {
        let (_first, second) = busy(cx);
        cx.refused_by(&second, |second| second.enable(UNKNOWN));
    }),
    on_device("disable.argument-is-ignored", usual, |_, device| {
        for argument in [0, 1, 4096, usize::MAX] {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            assert_eq!(device.request(KCOV_IOC_DISABLE, argument), Ok(()));
        }
    }),
    on_device("size.is-read-through-a-pointer", open, |_, device| {
        let entries: u64 = COVER_SIZE;
        let address = from_ref(&entries).expose_provenance();
        assert_eq!(device.request(KCOV_IOC_SETBUFSIZE, address), Ok(()));
        device.map(COVER_SIZE).expect("a buffer of that size");
        assert!(device.map(COVER_SIZE + 512).is_err(), "and no larger");
    }),
    on_device("size.least", open, |_, device| {
        assert_eq!(device.init_trace(KCOV_BUF_MIN_ENTRIES), Ok(()));
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    on_device("size.greatest", open, |_, device| {
        assert_eq!(device.init_trace(GREATEST), Ok(()));
        let map = device.map(GREATEST).expect("all of it is mapped");
        map.store(map.words() - 1, 1);
    }),
    check("size.far-above-greatest-is-refused", |cx| {
        // The last two come out small if truncated to 32 bits or multiplied into bytes.
        for entries in [u64::MAX, 1 << 63, (1 << 32) + 512, (1 << 61) + 512] {
            cx.refused_by(&open(cx), |device| device.init_trace(entries));
        }
    }),
    on_device("size.enabled-comes-before-range", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| device.init_trace(0));
        cx.refused_by(&device, |device| device.init_trace(GREATEST + 1));
    }),
    on_device("size.unreadable-argument-is-refused", open, |cx, device| {
        cx.refused_by(&device, |device| device.request(KCOV_IOC_SETBUFSIZE, 0));
        device.init_trace(COVER_SIZE).expect("it is still unsized");
    }),
];
