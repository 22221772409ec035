//! The end of the buffer in comparison mode, and counts stored by user space.

use crate::check::{Context, checks};
use crate::checks::shared::full::{enabled_page, nothing_is_written};
use crate::raw::{KCOV_TRACE_CMP, page_words};

checks! {
    stored_count_beyond_capacity needs(Comparisons, CmpBoundCheck),
}

fn stored_count_beyond_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    // After each of the last three counts, the next record's end wraps to a small offset.
    for count in [page_words(), 1 << 32, 1 << 62, (1 << 59) - 1, u64::MAX] {
        nothing_is_written(&map, count);
    }
}
