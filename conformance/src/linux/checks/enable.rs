//! `KCOV_ENABLE` and `KCOV_DISABLE`.

use super::remote::enabled_for;
use super::*;

pub(crate) const CHECKS: &[Check] = &[
    on_buffer("enable.needs-no-privilege", mapped, |_, device, map| {
        let traced: Result<bool> = child(|| {
            setuid(Uid::from_raw(65534)).expect("setuid");
            device.enable(KCOV_TRACE_PC)?;
            let traced = is_traced(&map);
            device.disable().map(|()| traced)
        });
        assert_eq!(traced, Ok(true));
    }),
    check("enable.enabled-remotely-is-refused", |cx| {
        let device = enabled_for(cx, &Remote::default());
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
        cx.refused_by(&device, |device| thread(|| device.enable(KCOV_TRACE_PC)));
    }),
    check("enable.busy-if-thread-collects-remotely", |cx| {
        let (remote, local) = (enabled_for(cx, &Remote::default()), sized(cx, COVER_SIZE));
        cx.refused_by(&local, |local| local.enable(KCOV_TRACE_PC));
        remote.disable().expect("disabled");
        local.enable(KCOV_TRACE_PC).expect("the second is enabled now");
    }),
    on_device("enable.device-state-comes-before-thread", enabled_pc, |cx, _first| {
        cx.refused_by(&open(cx), |device| device.enable(KCOV_TRACE_PC));
    }),
    on_device("enable.internal-number-of-mode-is-refused", usual, |cx, device| {
        // KCOV_MODE_TRACE_PC and KCOV_MODE_TRACE_CMP, which only the kernel's internal
        // header defines.
        for mode in [2_u32, 3] {
            cx.refused_by(&device, |device| device.enable(mode));
        }
    }),
    on_device("enable.mode-with-another-bit-is-refused", one_page, |cx, device| {
        for bit in 1..32 {
            for known in [KCOV_TRACE_PC, KCOV_TRACE_CMP] {
                cx.refused_by(&device, |device| device.enable(known | 1 << bit));
            }
        }
    }),
    on_device("enable.mode-beyond-32-bits-is-refused", usual, |cx, device| {
        for mode in [1 << 32, 1 << 63, (1 << 32) | u64::from(KCOV_TRACE_CMP), u64::MAX] {
            cx.refused_by(&device, |device| device.enable(mode));
        }
    }),
    check("enable.device-state-comes-before-mode", |cx| {
        // Comparison mode is accepted if built in, and otherwise refused with another
        // error. The state of the device must decide in both cases.
        cx.refused_by(&open(cx), |device| device.enable(KCOV_TRACE_CMP));
        let device = enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_CMP));
    }),
    check("enable.thread-comes-before-mode", |cx| {
        let (_first, second) = (enabled(cx, KCOV_TRACE_PC), sized(cx, COVER_SIZE));
        cx.refused_by(&second, |second| second.enable(u32::MAX));
        cx.refused_by(&second, |second| second.enable(KCOV_TRACE_CMP));
    }),
    on_device("enable.comparisons-not-built-is-refused", usual, |cx, device| {
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_CMP));
        device.enable(KCOV_TRACE_PC).expect("the other mode works");
    }),
    on_buffer("enable.nothing-instrumented", mapped, |_, device, map| {
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        call();
        assert!(device.enable(KCOV_TRACE_PC).is_err(), "it is enabled");
        assert_eq!(device.disable(), Ok(()));
        assert!(device.disable().is_err(), "it is disabled");
        assert!(is_zero(&map));
    }),
    on_buffer("disable.nonzero-argument-is-refused", collecting_pc, |cx, device, map| {
        for argument in [1, 2, 4096, u64::from(u32::MAX)] {
            cx.refused_by(&device, |device| device.disable_with(argument));
        }
        assert!(is_traced(&map), "it is still enabled");
        device.disable().expect("with 0 it is disabled");
    }),
    on_device("disable.argument-beyond-32-bits-is-refused", enabled_pc, |cx, device| {
        cx.refused_by(&device, |device| device.disable_with(1 << 32));
        cx.refused_by(&device, |device| device.disable_with(1 << 63));
    }),
];
