//! The end of the buffer, and counts stored by user space.

use crate::check::{Context, checks};
use crate::checks::shared::full::enabled_page;
use crate::checks::shared::{SENTINEL, fits, is_sentinel, mark};
use crate::raw::{KCOV_TRACE_PC, call, page_words};

checks! {
    stored_count_of_all_ones,
}

fn stored_count_of_all_ones(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    mark(&map, SENTINEL);
    let ones = if fits(u64::MAX) { u64::MAX } else { u32::MAX.into() };
    map.store(0, ones);
    call();
    let count = map.count();
    assert!(count >= page_words() && count != ones, "word 0 holds no record: {count:#x}");
    assert!(map.copy(1, map.words() - 1).iter().all(is_sentinel));
}
