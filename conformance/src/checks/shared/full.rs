//! The end of the buffer, and counts stored by user space.

use super::*;

/// Returns a device with a mapped one-page buffer, enabled in this mode.
pub(crate) fn enabled_page(cx: &Context, mode: u32) -> (Device, Map) {
    collecting_of(cx, page_words(), mode)
}

/// Makes calls until the count stops growing.
pub(crate) fn fill_up(map: &Map) {
    let mut last = u64::MAX;
    for _ in 0..map.words() * 2 {
        call();
        if map.count() == last {
            return;
        }
        last = map.count();
    }
    panic!("the count grows for ever: {last}");
}

/// Asserts that this thread's calls fill the buffer to its last word.
#[track_caller]
pub(crate) fn is_filled(map: &Map) {
    map.store(0, map.words() as u64 - 2);
    call();
    assert_eq!(map.count(), map.words() as u64 - 1);
}

fn full_buffer_keeps_its_records(cx: &Context, mode: u32) {
    let (_device, map) = enabled_page(cx, mode);
    fill_up(&map);
    let full = map.copy(0, map.words());
    (0..100).for_each(|_| call());
    assert_eq!(map.copy(0, map.words()), full);
}

/// Asserts that the next record follows `stored` records of this many words each.
#[track_caller]
fn next_follows_stored_count(map: &Map, stored: u64, words: u64) {
    mark_from(map, stored);
    call();
    let count = map.count();
    assert!(count > stored);
    let (before, new) = (index(words * stored), index(words * (count - stored)));
    assert!(map.copy(1, before).iter().all(is_sentinel), "before it");
    assert!(!map.copy(1 + before, new).iter().any(is_sentinel), "from it on");
}

/// Asserts that a call changes nothing if this is the count.
pub(crate) fn nothing_is_written(map: &Map, count: u64) {
    mark_from(map, count);
    call();
    assert_eq!(map.count(), count);
    assert!(is_marked_from(map, 1), "{count:#x}");
}

fn capacity(words: u64) -> u64 {
    (words * word_bytes() as u64 / 8 - 1) / 4
}

pub(crate) const CHECKS: &[Check] = &[
    check("pc.full.capacity-is-size-less-one", |cx| {
        for pages in 1..4 {
            let words = pages * page_words();
            let (device, map) = collecting_of(cx, words, KCOV_TRACE_PC);
            map.reset();
            fill_up(&map);
            assert_eq!(map.count(), words - 1);
            assert_ne!(map.load(index(words) - 1), 0, "the last word holds a record");
            device.disable().expect("disabled");
        }
    }),
    check("pc.full.full-buffer-keeps-its-records", |cx| {
        full_buffer_keeps_its_records(cx, KCOV_TRACE_PC);
    }),
    on_buffer("pc.full.full-buffer-collects-again-after-reset", page_of_pcs, |_, _device, map| {
        let has_room = || {
            fill_up(&map);
            map.reset();
            call();
            assert!(map.count() > 0, "a full buffer collects again");
            map.count() < page_words() - 1
        };
        // A preempted call can fill the page.
        assert!(at_times(has_room));
    }),
    on_buffer("pc.full.stored-count-places-the-next-record", page_of_pcs, |_, _device, map| {
        next_follows_stored_count(&map, 100, 1);
    }),
    on_buffer("pc.full.stored-count-of-capacity", page_of_pcs, |_, _device, map| {
        nothing_is_written(&map, page_words() - 1);
        nothing_is_written(&map, page_words());
    }),
    on_buffer("pc.full.stored-count-beyond-capacity", page_of_pcs, |_, _device, map| {
        let counts = [page_words() + 1, 1 << 31, 1 << 32, 1 << 61, 1 << 63, u64::MAX - 1];
        for count in counts.into_iter().filter(|count| fits(*count)) {
            nothing_is_written(&map, count);
        }
    }),
    check("cmp.full.capacity-is-whole-records", |cx| {
        for pages in 1..4 {
            let words = pages * page_words();
            let (device, map) = collecting_of(cx, words, KCOV_TRACE_CMP);
            mark_from(&map, 0);
            fill_up(&map);
            assert_eq!(map.count(), capacity(words));
            let used = 1 + index(capacity(words)) * 4;
            assert!(!map.copy(1, used - 1).iter().any(is_sentinel), "all records are there");
            assert!(used < map.words() && is_marked_from(&map, used), "and no more");
            device.disable().expect("disabled");
        }
    }),
    check("cmp.full.full-buffer-keeps-its-records", |cx| {
        full_buffer_keeps_its_records(cx, KCOV_TRACE_CMP);
    }),
    on_buffer("cmp.full.stored-count-places-the-next-record", page_of_cmps, |_, _device, map| {
        next_follows_stored_count(&map, 20, 4);
    }),
    on_buffer("cmp.full.stored-count-of-capacity", page_of_cmps, |_, _device, map| {
        nothing_is_written(&map, capacity(page_words()));
        nothing_is_written(&map, capacity(page_words()) + 1);
    }),
];
