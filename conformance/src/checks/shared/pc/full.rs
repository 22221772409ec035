//! The end of the buffer, and counts stored by user space.

use crate::check::{Context, checks};
use crate::checks::shared::full::{
    enabled_page, fill_up, keeps_its_records, next_follows_stored_count, nothing_is_written,
};
use crate::checks::shared::{fits, index, mapped_of};
use crate::raw::{KCOV_TRACE_PC, at_times, call, page_words};

checks! {
    "pc.full.capacity-is-size-less-one": capacity_is_size_less_one,
    "pc.full.full-buffer-keeps-its-records": full_buffer_keeps_its_records,
    "pc.full.full-buffer-collects-again-after-reset": full_buffer_collects_again_after_reset,
    "pc.full.stored-count-places-the-next-record": stored_count_places_the_next_record,
    "pc.full.stored-count-of-capacity": stored_count_of_capacity,
    "pc.full.stored-count-beyond-capacity": stored_count_beyond_capacity,
}

fn full_buffer_keeps_its_records(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    keeps_its_records(&map);
}

fn full_buffer_collects_again_after_reset(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    let has_room = || {
        fill_up(&map);
        map.reset();
        call();
        assert!(map.count() > 0, "a full buffer collects again");
        map.count() < page_words() - 1
    };
    // A preempted call can fill the page.
    assert!(at_times(has_room));
}

fn stored_count_places_the_next_record(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    next_follows_stored_count(&map, 100, 1);
}

fn stored_count_of_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    nothing_is_written(&map, page_words() - 1);
    nothing_is_written(&map, page_words());
}

fn capacity_is_size_less_one(cx: &Context) {
    for pages in 1..4 {
        let words = pages * page_words();
        let (device, map) = mapped_of(cx, words);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        map.reset();
        fill_up(&map);
        assert_eq!(map.count(), words - 1);
        assert_ne!(map.load(index(words) - 1), 0, "the last word holds a record");
        device.disable().expect("disabled");
    }
}

fn stored_count_beyond_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    let counts = [page_words() + 1, 1 << 31, 1 << 32, 1 << 61, 1 << 63, u64::MAX - 1];
    for count in counts.into_iter().filter(|count| fits(*count)) {
        nothing_is_written(&map, count);
    }
}
