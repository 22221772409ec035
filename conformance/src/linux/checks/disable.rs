//! `KCOV_DISABLE`.

use super::{COVER_SIZE, mapped, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, call};

checks! {
    "disable.nonzero-argument-is-refused": nonzero_argument_is_refused,
    "disable.argument-beyond-32-bits-is-refused": argument_beyond_32_bits_is_refused,
}

fn nonzero_argument_is_refused(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    for argument in [1, 2, 4096, u64::from(u32::MAX)] {
        cx.refused_by(&device, |device| device.disable_with(argument));
    }
    map.reset();
    call();
    assert!(map.count() > 0, "it is still enabled");
    device.disable().expect("with 0 it is disabled");
}

fn argument_beyond_32_bits_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    cx.refused_by(&device, |device| device.disable_with(1 << 32));
    cx.refused_by(&device, |device| device.disable_with(1 << 63));
}
