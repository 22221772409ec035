//! Requests that the driver does not know. Each system has its own list of them.

use super::{COVER_SIZE, open, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, thread};
use crate::system::checks::request::unknown_are_refused;

checks! {
    "request.unknown-before-sizing-is-refused": unknown_before_sizing_is_refused,
    "request.unknown-when-sized-is-refused": unknown_when_sized_is_refused,
    "request.unknown-while-enabled-is-refused": unknown_while_enabled_is_refused,
    "request.unknown-from-other-thread-is-refused": unknown_from_other_thread_is_refused,
}

fn unknown_before_sizing_is_refused(cx: &Context) {
    unknown_are_refused(cx, &open(cx));
}

fn unknown_when_sized_is_refused(cx: &Context) {
    unknown_are_refused(cx, &sized(cx, COVER_SIZE));
}

fn unknown_while_enabled_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    unknown_are_refused(cx, &device);
    device.disable().expect("it is still enabled");
}

fn unknown_from_other_thread_is_refused(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    thread(|| unknown_are_refused(cx, &device));
}
