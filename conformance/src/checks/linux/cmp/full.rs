//! The buffer's end in comparison mode, and counts that user space stores.

use crate::check::{Context, checks};
use crate::checks::shared::full::{enabled_page, nothing_is_written};
use crate::raw::{KCOV_TRACE_CMP, page_words};

checks! {
    stored_count_beyond_capacity needs(Comparisons, CmpBoundCheck),
}

fn stored_count_beyond_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    // Four times the last three, or 32 times, wrap to small numbers.
    for count in [page_words(), 1 << 32, 1 << 62, (1 << 59) - 1, u64::MAX] {
        nothing_is_written(&map, count);
    }
}
