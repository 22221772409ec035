//! `KCOV_ENABLE`.

use super::{COVER_SIZE, mapped, open, records, sized};
use crate::check::{Context, checks};
use crate::errno::Result;
use crate::raw::{KCOV_TRACE_CMP, KCOV_TRACE_PC, Remote, call, child, page_words, thread};
use nix::unistd::{Uid, setuid};

checks! {
    "enable.needs-no-privilege": needs_no_privilege,
    "enable.enabled-remotely-is-refused": enabled_remotely_is_refused,
    "enable.busy-if-thread-collects-remotely": busy_if_thread_collects_remotely,
    "enable.device-state-comes-before-thread": device_state_comes_before_thread,
    "enable.internal-number-of-mode-is-refused": internal_number_of_mode_is_refused,
    "enable.mode-with-another-bit-is-refused": mode_with_another_bit_is_refused,
    "enable.mode-beyond-32-bits-is-refused": mode_beyond_32_bits_is_refused,
    "enable.device-state-comes-before-mode": device_state_comes_before_mode,
    "enable.thread-comes-before-mode": thread_comes_before_mode,
    "enable.comparisons-not-built-is-refused": comparisons_not_built_is_refused,
    "enable.nothing-instrumented": nothing_instrumented,
}

fn needs_no_privilege(cx: &Context) {
    let (device, map) = mapped(cx);
    let traced: Result<bool> = child(|| {
        setuid(Uid::from_raw(65534)).expect("setuid");
        device.enable(KCOV_TRACE_PC)?;
        let traced = records(&map);
        device.disable().map(|()| traced)
    });
    assert_eq!(traced, Ok(true));
}

fn enabled_remotely_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.remote_enable(&Remote::default()).expect("enabled remotely");
    cx.refused_by(&device, |device| device.enable(KCOV_TRACE_PC));
    cx.refused_by(&device, |device| thread(|| device.enable(KCOV_TRACE_PC)));
}

fn busy_if_thread_collects_remotely(cx: &Context) {
    let (remote, local) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    remote.remote_enable(&Remote::default()).expect("the first is enabled");
    cx.refused_by(&local, |local| local.enable(KCOV_TRACE_PC));
    remote.disable().expect("disabled");
    local.enable(KCOV_TRACE_PC).expect("the second is enabled now");
}

fn device_state_comes_before_thread(cx: &Context) {
    let (first, unsized_device) = (sized(cx, COVER_SIZE), open(cx));
    first.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&unsized_device, |unsized_device| unsized_device.enable(KCOV_TRACE_PC));
}

fn internal_number_of_mode_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    // KCOV_MODE_TRACE_PC and KCOV_MODE_TRACE_CMP, which only the kernel's internal header defines.
    for mode in [2_u32, 3] {
        cx.refused_by(&device, |device| device.enable(mode));
    }
}

fn mode_with_another_bit_is_refused(cx: &Context) {
    let device = sized(cx, page_words());
    for bit in 1..32 {
        for known in [KCOV_TRACE_PC, KCOV_TRACE_CMP] {
            cx.refused_by(&device, |device| device.enable(known | 1 << bit));
        }
    }
}

fn mode_beyond_32_bits_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for mode in [1 << 32, 1 << 63, (1 << 32) | u64::from(KCOV_TRACE_CMP), u64::MAX] {
        cx.refused_by(&device, |device| device.enable(mode));
    }
}

fn device_state_comes_before_mode(cx: &Context) {
    // Comparison mode is accepted if built in, and otherwise refused with another error. The state
    // of the device must decide in both cases.
    cx.refused_by(&open(cx), |device| device.enable(KCOV_TRACE_CMP));
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| device.enable(KCOV_TRACE_CMP));
}

fn thread_comes_before_mode(cx: &Context) {
    let (first, second) = (sized(cx, COVER_SIZE), sized(cx, COVER_SIZE));
    first.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&second, |second| second.enable(u32::MAX));
    cx.refused_by(&second, |second| second.enable(KCOV_TRACE_CMP));
}

fn comparisons_not_built_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    cx.refused_by(&device, |device| device.enable(KCOV_TRACE_CMP));
    device.enable(KCOV_TRACE_PC).expect("the other mode works");
}

fn nothing_instrumented(cx: &Context) {
    let (device, map) = mapped(cx);
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
    call();
    assert!(device.enable(KCOV_TRACE_PC).is_err(), "it is enabled");
    assert_eq!(device.disable(), Ok(()));
    assert!(device.disable().is_err(), "it is disabled");
    assert!(map.copy(0, map.words()).iter().all(|&word| word == 0));
}
