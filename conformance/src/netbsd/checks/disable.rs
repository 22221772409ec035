//! `KCOV_IOC_DISABLE`.

use super::{COVER_SIZE, sized};
use crate::check::{Context, checks};
use crate::raw::KCOV_TRACE_PC;
use kcov_sys::netbsd::KCOV_IOC_DISABLE;

checks! {
    "disable.argument-is-ignored": argument_is_ignored,
}

fn argument_is_ignored(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for argument in [0, 1, 4096, usize::MAX] {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        assert_eq!(device.request(KCOV_IOC_DISABLE, argument), Ok(()));
    }
}
