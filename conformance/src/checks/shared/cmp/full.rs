//! The end of the buffer in comparison mode, and counts stored by user space.

use crate::check::{Context, checks};
use crate::checks::shared::full::{
    enabled_page, fill_up, keeps_its_records, next_follows_stored_count, nothing_is_written,
};
use crate::checks::shared::{SENTINEL, index, is_sentinel, mapped_of, mark};
use crate::raw::{KCOV_TRACE_CMP, page_words, word_bytes};

checks! {
    "cmp.full.capacity-is-whole-records": capacity_is_whole_records,
    "cmp.full.full-buffer-keeps-its-records": full_buffer_keeps_its_records,
    "cmp.full.stored-count-places-the-next-record": stored_count_places_the_next_record,
    "cmp.full.stored-count-of-capacity": stored_count_of_capacity,
}

fn capacity(words: u64) -> u64 {
    (words * word_bytes() as u64 / 8 - 1) / 4
}

fn full_buffer_keeps_its_records(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    keeps_its_records(&map);
}

fn stored_count_places_the_next_record(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    next_follows_stored_count(&map, 20, 4);
}

fn stored_count_of_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    nothing_is_written(&map, capacity(page_words()));
    nothing_is_written(&map, capacity(page_words()) + 1);
}

fn capacity_is_whole_records(cx: &Context) {
    for pages in 1..4 {
        let words = pages * page_words();
        let (device, map) = mapped_of(cx, words);
        device.enable(KCOV_TRACE_CMP).expect("enabled");
        mark(&map, SENTINEL);
        map.reset();
        fill_up(&map);
        assert_eq!(map.count(), capacity(words));
        let used = 1 + index(capacity(words)) * 4;
        assert!(!map.copy(1, used - 1).iter().any(is_sentinel), "all records are there");
        let rest = map.copy(used, map.words() - used);
        assert!(!rest.is_empty() && rest.iter().all(is_sentinel), "and no more");
        device.disable().expect("disabled");
    }
}
