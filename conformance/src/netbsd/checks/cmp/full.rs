//! Comparison mode with buffers of any number of entries, and with counts stored by user space.
//!
//! The kernel multiplies the count by four before it compares it with the size, so a count may
//! wrap. If the product is just below 2^64, it writes in front of the buffer: no check tries that.

use crate::check::{Context, checks};
use crate::checks::shared::full::{enabled_page, nothing_is_written};
use crate::checks::shared::{SENTINEL, index, mark};
use crate::raw::{KCOV_TRACE_CMP, call, page_words};
use crate::system::checks::{mapped, mapped_pages_of};

checks! {
    "cmp.full.capacity-of-any-number-of-entries": capacity_of_any_number_of_entries,
    "cmp.full.small-buffers-hold-none": small_buffers_hold_none,
    "cmp.full.stored-count-beyond-capacity": stored_count_beyond_capacity,
    "cmp.full.stored-count-wraps-to-the-start": stored_count_wraps_to_the_start,
}

fn capacity_is(cx: &Context, entries: u64, capacity: u64) {
    let (device, map) = mapped_pages_of(cx, entries);
    mark(&map, SENTINEL);
    device.enable(KCOV_TRACE_CMP).expect("enabled");
    map.reset();
    for _ in 0..entries {
        call();
    }
    device.disable().expect("disabled");
    assert_eq!(map.count(), capacity, "{entries} entries");
    let used = 1 + 4 * index(capacity);
    let behind = map.copy(used, map.words() - used);
    assert!(behind.iter().all(|&word| word == SENTINEL), "{entries} entries");
}

fn capacity_of_any_number_of_entries(cx: &Context) {
    for entries in [5, 8, 9, 16, page_words() - 1, page_words(), page_words() + 1] {
        capacity_is(cx, entries, (entries - 1) / 4);
    }
}

fn small_buffers_hold_none(cx: &Context) {
    for entries in [2, 3, 4] {
        capacity_is(cx, entries, 0);
    }
}

fn stored_count_beyond_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    // None of them wraps to a small number, though the last two nearly do.
    for count in [page_words(), 1 << 32, 1 << 61, (1 << 62) - 2, u64::MAX - 1] {
        nothing_is_written(&map, count);
    }
}

fn stored_count_wraps_to_the_start(cx: &Context) {
    const WRAPS: u64 = 1 << 62;
    // On a busy host, the call may make more comparisons than a page holds.
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_CMP).expect("enabled");
    mark(&map, SENTINEL);
    map.store(0, WRAPS);
    call();
    let count = map.count();
    device.disable().expect("disabled");
    let records = index(count - WRAPS);
    assert!(records > 0 && records < map.words() / 4 - 1, "{count:#x}");
    let used = map.copy(1, 4 * records);
    assert!(!used.contains(&SENTINEL), "the records begin at word 1");
}
