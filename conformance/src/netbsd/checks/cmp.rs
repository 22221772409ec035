//! Comparison operands: promises that only NetBSD makes.
//!
//! The kernel multiplies the count by four before it compares it with the size, so a count may
//! wrap. If the product is just below 2^64, it writes in front of the buffer: no check tries that.

pub(super) mod operands;

use super::calls::{MAGIC, switch_over_argument};
use super::pc::ticks_add_nothing;
use super::*;
use crate::checks::shared::full::nothing_is_written;
use kcov_sys::netbsd::{KCOV_CMP_CONST, kcov_cmp_size};

/// The type and both operands of each comparison with the number. A switch makes several.
fn cases(cx: &Context) -> Vec<(u64, u64, u64)> {
    let (device, map) = collecting(cx, KCOV_TRACE_CMP);
    map.reset();
    switch_over_argument();
    let words = map.copy(1, 4 * super::index(map.count()));
    device.disable().expect("disabled");
    let records = words.chunks_exact(4).map(|record| (record[0], record[1], record[2]));
    records.filter(|&(_, first, second)| [first, second].contains(&u64::from(MAGIC))).collect()
}

fn capacity_is(cx: &Context, entries: u64, capacity: u64) {
    let (device, map) = mapped_pages_of(cx, entries);
    mark(&map, SENTINEL);
    device.enable(KCOV_TRACE_CMP).expect("enabled");
    map.reset();
    (0..entries).for_each(|_| call());
    device.disable().expect("disabled");
    assert_eq!(map.count(), capacity, "{entries} entries");
    assert!(is_marked_from(&map, 1 + 4 * index(capacity)), "{entries} entries");
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.interrupts-add-nothing", |cx| ticks_add_nothing(cx, KCOV_TRACE_CMP)),
    check("cmp.switch-is-constant", |cx| {
        let cases = cases(cx);
        assert!(cases.len() > 1, "a switch: {cases:x?}");
        for (kind, _, _) in cases {
            assert_eq!(kind, KCOV_CMP_CONST | kcov_cmp_size(2));
        }
    }),
    check("cmp.switch-case-comes-first", |cx| {
        let cases = cases(cx);
        assert!(cases.len() > 1, "a switch: {cases:x?}");
        for (_, first, second) in cases {
            assert_ne!(first, u64::from(MAGIC));
            assert_eq!(second, u64::from(MAGIC));
        }
    }),
    check("cmp.full.capacity-of-any-number-of-entries", |cx| {
        for entries in [5, 8, 9, 16, page_words() - 1, page_words(), page_words() + 1] {
            capacity_is(cx, entries, (entries - 1) / 4);
        }
    }),
    check("cmp.full.small-buffers-hold-none", |cx| {
        for entries in [2, 3, 4] {
            capacity_is(cx, entries, 0);
        }
    }),
    on_buffer("cmp.full.stored-count-beyond-capacity", page_of_cmps, |_, _device, map| {
        // None of them wraps to a small number, though the last two nearly do.
        for count in [page_words(), 1 << 32, 1 << 61, (1 << 62) - 2, u64::MAX - 1] {
            nothing_is_written(&map, count);
        }
    }),
    check("cmp.full.stored-count-wraps-to-the-start", |cx| {
        const WRAPS: u64 = 1 << 62;
        // On a busy host, the call may make more comparisons than a page holds.
        let (device, map) = collecting(cx, KCOV_TRACE_CMP);
        mark_from(&map, WRAPS);
        call();
        let count = map.count();
        device.disable().expect("disabled");
        let records = index(count - WRAPS);
        assert!(records > 0 && records < map.words() / 4 - 1, "{count:#x}");
        let used = map.copy(1, 4 * records);
        assert!(!used.contains(&SENTINEL), "the records begin at word 1");
    }),
];
