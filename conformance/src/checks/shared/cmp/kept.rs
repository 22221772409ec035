//! What leaves the words of a buffer of comparisons alone.

use crate::check::{Context, checks};
use crate::checks::shared::kept;
use crate::raw::KCOV_TRACE_CMP;

checks! {
    by_mapping needs(Comparisons),
    by_unmapping needs(Comparisons),
    by_closing_a_duplicate needs(Comparisons),
    by_other_devices needs(Comparisons),
    by_enabling_and_disabling needs(Comparisons),
    by_the_end_of_the_thread needs(Comparisons),
}

fn by_mapping(cx: &Context) {
    kept::by_mapping(cx, KCOV_TRACE_CMP);
}

fn by_unmapping(cx: &Context) {
    kept::by_unmapping(cx, KCOV_TRACE_CMP);
}

fn by_closing_a_duplicate(cx: &Context) {
    kept::by_closing_a_duplicate(cx, KCOV_TRACE_CMP);
}

fn by_other_devices(cx: &Context) {
    kept::by_other_devices(cx, KCOV_TRACE_CMP);
}

fn by_enabling_and_disabling(cx: &Context) {
    kept::by_enabling_and_disabling(cx, KCOV_TRACE_CMP);
}

fn by_the_end_of_the_thread(cx: &Context) {
    kept::by_the_end_of_the_thread(cx, KCOV_TRACE_CMP);
}
