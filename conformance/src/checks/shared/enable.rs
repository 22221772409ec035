//! `KCOV_ENABLE` and `KCOV_DISABLE`.

use crate::checks::prelude::*;

pub(crate) const CHECKS: &[Check] = &[
    check("enable.current-thread", |cx| {
        let (device, map) = mapped(cx);
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        assert!(is_traced(&map));
    }),
    check("enable.again-after-disable", |cx| {
        let (device, map) = mapped(cx);
        for round in 0..100 {
            assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "round {round}");
            assert!(is_traced(&map), "round {round}");
            assert_eq!(device.disable(), Ok(()), "round {round}");
        }
    }),
    check("enable.modes-are-exclusive", |cx| {
        for (first, second) in [(KCOV_TRACE_PC, KCOV_TRACE_CMP), (KCOV_TRACE_CMP, KCOV_TRACE_PC)] {
            let (device, map) = mapped(cx);
            device.enable(first).expect("the first mode");
            assert!(device.enable(second).is_err(), "mode {second} beside {first}");
            let other = sized(cx, COVER_SIZE);
            assert!(other.enable(second).is_err(), "mode {second} on another device");
            assert!(is_traced(&map), "mode {first} goes on");
            assert_eq!(
                map.load(1) < 8,
                first == KCOV_TRACE_CMP,
                "{:#x} in mode {first}",
                map.load(1)
            );
            device.disable().expect("disabled");
        }
    }),
    check("enable.other-mode-after-disable", |cx| {
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
    }),
    check("enable.through-duplicate", |cx| {
        let (device, map) = mapped(cx);
        let duplicate = device.duplicate().expect("a duplicate");
        assert_eq!(duplicate.enable(KCOV_TRACE_PC), Ok(()));
        assert!(is_traced(&map));
        assert_eq!(device.disable(), Ok(()), "one device, whichever descriptor");
    }),
    check("enable.before-sizing-is-refused", |cx| {
        let device = open(cx);
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        assert_eq!(device.init_trace(COVER_SIZE), Ok(()), "it is not enabled");
        let (other, map) = mapped(cx);
        assert_eq!(other.enable(KCOV_TRACE_PC), Ok(()), "the thread is not busy");
        assert!(is_traced(&map));
    }),
    check("enable.already-enabled-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        device.disable().expect("it is enabled once");
    }),
    check("enable.already-enabled-through-duplicate-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        cx.refused(device.duplicate().expect("a duplicate").enable(KCOV_TRACE_PC));
    }),
    check("enable.enabled-by-other-thread-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        while_other_is_enabled(&device, || {
            cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        });
    }),
    check("enable.busy-if-thread-already-enabled", |cx| {
        let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        first.enable(KCOV_TRACE_PC).expect("the first is enabled");
        cx.refused_by(&second, |second| second.enable(KCOV_TRACE_PC));
        first.disable().expect("disabled");
        second.enable(KCOV_TRACE_PC).expect("the second is enabled now");
    }),
    check("enable.unknown-mode-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        for mode in [3, 16, 255, 1 << 30, u32::MAX] {
            cx.refused_by(&device, |device| device.enable(mode));
        }
    }),
    check("enable.refusal-leaves-thread-untraced", |cx| {
        let (device, map) = mapped(cx);
        assert!(device.enable(1_u32 << 30).is_err());
        call();
        assert_eq!(map.count(), 0);
        assert!(device.disable().is_err(), "there is nothing to disable");
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    }),
    check("enable.count-is-kept", |cx| {
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
    }),
    check("disable.stops-collection", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        assert_eq!(device.disable(), Ok(()));
        map.reset();
        (0..100).for_each(|_| call());
        assert_eq!(map.count(), 0);
    }),
    check("disable.lets-other-thread-enable", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        thread(|| {
            assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
            assert!(is_traced(&map));
        });
    }),
    check("disable.through-duplicate", |cx| {
        let (device, map) = mapped(cx);
        let duplicate = device.duplicate().expect("a duplicate");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert_eq!(duplicate.disable(), Ok(()));
        map.reset();
        call();
        assert_eq!(map.count(), 0);
    }),
    check("disable.before-sizing-is-refused", |cx| cx.refused_by(&open(cx), Device::disable)),
    check("disable.not-enabled-is-refused", |cx| {
        cx.refused_by(&sized(cx, COVER_SIZE), Device::disable);
    }),
    check("disable.second-time-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        device.disable().expect("disabled");
        cx.refused_by(&device, Device::disable);
    }),
    check("disable.other-device-is-refused", |cx| {
        let (device, other) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        device.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused_by(&other, Device::disable);
        device.disable().expect("the first is still enabled");
    }),
    check("disable.other-thread-is-refused", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| thread(|| device.disable()));
        assert!(is_traced(&map), "it is still enabled");
    }),
    check("disable.device-of-other-traced-thread-is-refused", |cx| {
        let (device, mine) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        while_other_is_enabled(&device, || {
            // Being traced gives this thread no right over another thread's device.
            mine.enable(KCOV_TRACE_PC).expect("this thread has a device of its own");
            cx.refused_by(&device, Device::disable);
            assert_eq!(mine.disable(), Ok(()), "which stays enabled");
        });
    }),
    check("disable.forked-child-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| child(|| device.disable()));
        device.disable().expect("it is still enabled");
    }),
];
