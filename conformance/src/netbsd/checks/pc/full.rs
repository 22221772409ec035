//! Buffers of any number of entries, and the maximum count.

use crate::check::{Context, checks};
use crate::checks::shared::full::{enabled_page, nothing_is_written};
use crate::checks::shared::{SENTINEL, index, mark};
use crate::raw::{KCOV_TRACE_PC, call, page_words};
use crate::system::checks::mapped_pages_of;

checks! {
    "pc.full.capacity-is-entries-less-one": capacity_is_entries_less_one,
    "pc.full.stored-count-of-all-ones": stored_count_of_all_ones,
}

fn capacity_is_entries_less_one(cx: &Context) {
    for entries in [2, 3, page_words() - 1, page_words(), page_words() + 1] {
        let (device, map) = mapped_pages_of(cx, entries);
        mark(&map, SENTINEL);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        map.reset();
        for _ in 0..entries {
            call();
        }
        assert_eq!(map.count(), entries - 1, "{entries} entries");
        assert_ne!(map.load(index(entries) - 1), SENTINEL, "the last entry is used");
        let behind = map.copy(index(entries), map.words() - index(entries));
        assert!(behind.iter().all(|&word| word == SENTINEL), "and no word behind it");
        device.disable().expect("disabled");
    }
}

fn stored_count_of_all_ones(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    nothing_is_written(&map, u64::MAX);
}
