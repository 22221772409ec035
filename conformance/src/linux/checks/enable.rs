//! `KCOV_ENABLE` and `KCOV_DISABLE`.

use super::remote::enabled_for;
use crate::checks::prelude::*;
use crate::errno::Result;
use nix::unistd::{Uid, setuid};

pub(crate) const CHECKS: &[Check] = &[
    check("enable.needs-no-privilege", |cx| {
        let (device, map) = mapped(cx);
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
        let (remote, local) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        remote.remote_enable(&Remote::default()).expect("the first is enabled");
        cx.refused_by(&local, |local| local.enable(KCOV_TRACE_PC));
        remote.disable().expect("disabled");
        local.enable(KCOV_TRACE_PC).expect("the second is enabled now");
    }),
    check("enable.device-state-comes-before-thread", |cx| {
        let (first, unsized_device) = (sized(cx, COVER_SIZE), open(cx));
        first.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused_by(&unsized_device, |unsized_device| unsized_device.enable(KCOV_TRACE_PC));
    }),
    check("enable.internal-number-of-mode-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        // KCOV_MODE_TRACE_PC and KCOV_MODE_TRACE_CMP, which only the kernel's internal
        // header defines.
        for mode in [2_u32, 3] {
            cx.refused_by(&device, |device| device.enable(mode));
        }
    }),
    check("enable.mode-with-another-bit-is-refused", |cx| {
        let device = sized(cx, page_words());
        for bit in 1..32 {
            for known in [KCOV_TRACE_PC, KCOV_TRACE_CMP] {
                cx.refused_by(&device, |device| device.enable(known | 1 << bit));
            }
        }
    }),
    check("enable.mode-beyond-32-bits-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
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
        let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
        first.enable(KCOV_TRACE_PC).expect("enabled");
        cx.refused_by(&second, |second| second.enable(u32::MAX));
        cx.refused_by(&second, |second| second.enable(KCOV_TRACE_CMP));
    }),
    check("enable.comparisons-not-built-is-refused", |cx| {
        let device = sized(cx, COVER_SIZE);
        cx.refused_by(&device, |device| device.enable(KCOV_TRACE_CMP));
        device.enable(KCOV_TRACE_PC).expect("the other mode works");
    }),
    check("enable.nothing-instrumented", |cx| {
        let (device, map) = mapped(cx);
        assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
        call();
        assert!(device.enable(KCOV_TRACE_PC).is_err(), "it is enabled");
        assert_eq!(device.disable(), Ok(()));
        assert!(device.disable().is_err(), "it is disabled");
        assert!(map.copy(0, map.words()).iter().all(|&word| word == 0));
    }),
    check("disable.nonzero-argument-is-refused", |cx| {
        let (device, map) = collecting(cx, KCOV_TRACE_PC);
        for argument in [1, 2, 4096, u64::from(u32::MAX)] {
            cx.refused_by(&device, |device| device.disable_with(argument));
        }
        assert!(is_traced(&map), "it is still enabled");
        device.disable().expect("with 0 it is disabled");
    }),
    check("disable.argument-beyond-32-bits-is-refused", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        cx.refused_by(&device, |device| device.disable_with(1 << 32));
        cx.refused_by(&device, |device| device.disable_with(1 << 63));
    }),
];
