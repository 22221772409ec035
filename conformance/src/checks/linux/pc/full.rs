//! The end of the buffer, and counts stored by user space.

use crate::check::{Context, checks};
use crate::checks::shared::full::enabled_page;
use crate::checks::shared::{SENTINEL, is_sentinel, mark};
use crate::raw::{KCOV_TRACE_PC, call, page_words};

checks! {
    stored_count_of_all_ones,
}

fn stored_count_of_all_ones(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    mark(&map, SENTINEL);
    map.store(0, u64::MAX);
    let stored = map.count();
    call();
    let count = map.count();
    assert!(count >= page_words() && count != stored, "word 0 holds a record: {count:#x}");
    assert!(map.copy(1, map.words() - 1).iter().all(is_sentinel));
}
