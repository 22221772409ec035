//! What leaves the words of a buffer of program counters alone.

use crate::check::{Context, checks};
use crate::checks::shared::kept;
use crate::raw::KCOV_TRACE_PC;

checks! {
    by_mapping,
    by_unmapping,
    by_closing_a_duplicate,
    by_other_devices,
    by_enabling_and_disabling,
    by_the_end_of_the_thread,
}

fn by_mapping(cx: &Context) {
    kept::by_mapping(cx, KCOV_TRACE_PC);
}

fn by_unmapping(cx: &Context) {
    kept::by_unmapping(cx, KCOV_TRACE_PC);
}

fn by_closing_a_duplicate(cx: &Context) {
    kept::by_closing_a_duplicate(cx, KCOV_TRACE_PC);
}

fn by_other_devices(cx: &Context) {
    kept::by_other_devices(cx, KCOV_TRACE_PC);
}

fn by_enabling_and_disabling(cx: &Context) {
    kept::by_enabling_and_disabling(cx, KCOV_TRACE_PC);
}

fn by_the_end_of_the_thread(cx: &Context) {
    kept::by_the_end_of_the_thread(cx, KCOV_TRACE_PC);
}
