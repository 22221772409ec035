//! `KCOV_ENABLE` and `KCOV_DISABLE`.

use super::*;

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("enable.current-thread", mapped, |_, device, map| {
        traces(&device, &map);
    }),
    on_buffer("enable.again-after-disable", mapped, |_, device, map| {
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
            let word = map.load(1);
            assert_eq!(word < 8, first == KCOV_TRACE_CMP, "{word:#x} in mode {first}");
            device.disable().expect("disabled");
        }
    }),
    on_buffer("enable.other-mode-after-disable", mapped, |_, device, map| {
        let mut shapes = Vec::new();
        for mode in [KCOV_TRACE_PC, KCOV_TRACE_CMP, KCOV_TRACE_PC] {
            assert_eq!(device.enable(mode), Ok(()), "mode {mode}");
            assert!(is_traced(&map), "mode {mode}");
            // A comparison's type is a small number, a program counter is not.
            shapes.push(map.load(1) < 8);
            device.disable().expect("disabled");
        }
        assert_eq!(shapes, [false, true, false]);
    }),
    on_buffer("enable.through-duplicate", mapped, |_, device, map| {
        let duplicate = device.duplicate().expect("a duplicate");
        traces(&duplicate, &map);
        assert_eq!(device.disable(), Ok(()), "one device, whichever descriptor");
    }),
    on_device("enable.before-sizing-is-refused", open, |cx, device| {
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        assert_eq!(device.init_trace(COVER_SIZE), Ok(()), "it is not enabled");
        let (other, map) = mapped(cx);
        assert_eq!(other.enable(KCOV_TRACE_PC), Ok(()), "the thread is not busy");
        assert!(is_traced(&map));
    }),
    on_device("enable.already-enabled-is-refused", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        device.disable().expect("it is enabled once");
    }),
    on_device("enable.already-enabled-through-duplicate-is-refused", enabled_pc, |cx, device| {
        cx.refused(device.duplicate().expect("a duplicate").enable(KCOV_TRACE_PC));
    }),
    on_device("enable.enabled-by-other-thread-is-refused", usual, |cx, device| {
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
    on_device("enable.unknown-mode-is-refused", usual, |cx, device| {
        for mode in [3, 16, 255, 1 << 30, u32::MAX] {
            cx.refused_by(&device, |device| device.enable(mode));
        }
    }),
    on_buffer("enable.refusal-leaves-thread-untraced", mapped, |_, device, map| {
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
    on_buffer("disable.stops-collection", collecting_pc, |_, device, map| {
        assert_eq!(device.disable(), Ok(()));
        map.reset();
        (0..100).for_each(|_| call());
        assert_eq!(map.count(), 0);
    }),
    on_buffer("disable.lets-other-thread-enable", collecting_pc, |_, device, map| {
        device.disable().expect("disabled");
        thread(|| {
            traces(&device, &map);
        });
    }),
    on_buffer("disable.through-duplicate", mapped, |_, device, map| {
        let duplicate = device.duplicate().expect("a duplicate");
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert_eq!(duplicate.disable(), Ok(()));
        assert!(!is_traced(&map));
    }),
    check("disable.before-sizing-is-refused", |cx| cx.refused_by(&open(cx), Device::disable)),
    check("disable.not-enabled-is-refused", |cx| {
        cx.refused_by(&sized(cx, COVER_SIZE), Device::disable);
    }),
    on_device("disable.second-time-is-refused", enabled_pc, |cx, device| {
        device.disable().expect("disabled");
        cx.refused_by(&device, Device::disable);
    }),
    check("disable.other-device-is-refused", |cx| {
        let (device, other) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        device.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused_by(&other, Device::disable);
        device.disable().expect("the first is still enabled");
    }),
    on_buffer("disable.other-thread-is-refused", collecting_pc, |cx, device, map| {
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
    on_device("disable.forked-child-is-refused", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| child(|| device.disable()));
        device.disable().expect("it is still enabled");
    }),
];
