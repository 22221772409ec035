//! Comparison operands: promises that only Linux makes, or that only its calls are known to compare.
//! On NetBSD, creating a thread, child or program records more comparisons than a buffer holds.

pub(super) mod operands;

use super::calls::{self};
use super::pc::DELIVERY;
use super::pc::{in_no_tick, in_none_of, spin};
use super::*;
use crate::checks::shared::cmp::{Comparison, collect, collects};
use crate::checks::shared::exec::goes_on_in_a_new_program;
use crate::checks::shared::thread::added_records;

/// Asserts that the call compares `operand` as this type. Returns the other operands.
#[track_caller]
fn compared(cx: &Context, traced: fn(), kind: u64, operand: u64) -> Vec<u64> {
    let found = collect(cx, traced);
    let other = |c: &Comparison| match (c.first, c.second) {
        _ if c.kind != kind => None,
        (other, second) if second == operand => Some(other),
        // Two variables may come in either order.
        (first, other) if first == operand && kind & KCOV_CMP_CONST == 0 => Some(other),
        _ => None,
    };
    let others: Vec<u64> = found.iter().filter_map(other).collect();
    assert!(!others.is_empty(), "no comparison of type {kind} has {operand:#x}: {found:#x?}");
    others
}

/// Counts the records that calls of the current thread add. Resets the count first, since creating
/// the thread or child may have filled the buffer.
fn added_after_reset(map: &Map) -> u64 {
    let _ = settled(map);
    map.reset();
    added_records(map, 4)
}

fn addresses(comparisons: &[Comparison]) -> Vec<u64> {
    comparisons.iter().map(|comparison| comparison.address).collect()
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.type-is-that-of-the-operands", |cx| {
        let constant = |size| kcov_cmp_size(size) | KCOV_CMP_CONST;
        // Their highest bits are set, so sign extension would show.
        let [byte, half, word] = [0xff, 0xffff, 0xffff_ffff].map(|mask| WIDE & mask);
        compared(cx, calls::compare_byte, constant(0), byte);
        let locks = compared(cx, calls::compare_bytes, kcov_cmp_size(0), libc::F_WRLCK as u64);
        assert!(locks.contains(&(libc::F_RDLCK as u64)), "{locks:x?}");
        let families = compared(cx, calls::compare_half, constant(1), half);
        assert!(families.contains(&(libc::AF_UNIX as u64)), "{families:x?}");
        compared(cx, calls::compare_word, constant(2), word);
        let descriptors = compared(cx, calls::compare_words, kcov_cmp_size(2), word);
        assert!(descriptors.contains(&(word - 1)), "{descriptors:x?}");
    }),
    check("cmp.type-of-64-bit-operands", |cx| {
        let constants = compared(cx, calls::compare_long, kcov_cmp_size(3) | KCOV_CMP_CONST, WIDE);
        assert!(constants.iter().all(|&constant| constant <= 1_000_000_000), "{constants:x?}");
        let limits = compared(cx, calls::compare_longs, kcov_cmp_size(3), WIDE);
        assert!(limits.contains(&(WIDE - 1)), "{limits:x?}");
        let cases = compared(cx, calls::switch_over_long, kcov_cmp_size(3) | KCOV_CMP_CONST, WIDE);
        assert!(cases.contains(&0) && cases.contains(&1), "{cases:x?}");
    }),
    on_buffer("cmp.full.last-record-is-whole", page_of_cmps, |_, _device, map| {
        fill_up(&map);
        let last = map.copy(1 + (index(map.count()) - 1) * 4, 4);
        // As in every record, the first word is a type and the last one an address.
        assert!(last[0] < 8 && last[3] >= 4096, "{last:#x?}");
    }),
    check("cmp.full.buffer-without-room-is-accepted", |cx| {
        for words in 2..5 {
            let device = sized(cx, words);
            assert_eq!(device.enable(KCOV_TRACE_CMP), Ok(()), "{words} words");
            call();
            assert_eq!(device.disable(), Ok(()), "{words} words");
        }
    }),
    on_buffer("cmp.full.stored-count-beyond-capacity", page_of_cmps, |_, _device, map| {
        // After each of the last three counts, the next record's end wraps to a small offset.
        for count in [page_words(), 1 << 32, 1 << 62, (1 << 59) - 1, u64::MAX] {
            nothing_is_written(&map, count);
        }
    }),
    on_buffer("cmp.life.new-thread-is-not-traced", collecting_cmp, |_, _device, map| {
        // The enabled thread blocks in the join.
        assert_eq!(thread(|| added_after_reset(&map)), 0);
        collects(&map);
    }),
    on_buffer("cmp.life.forked-child-is-not-traced", collecting_cmp, |_, _device, map| {
        // The parent blocks until the child sends its result.
        assert_eq!(child(|| added_after_reset(&map)), 0);
        collects(&map);
    }),
    check("cmp.life.tracing-goes-on-in-a-new-program", |cx| {
        goes_on_in_a_new_program(cx, KCOV_TRACE_CMP);
    }),
    check("cmp.soft.ticks-add-nothing", |cx| in_no_tick(|| addresses(&collect(cx, spin)))),
    check("cmp.soft.interrupts-add-nothing", |cx| {
        let loopback = Loopback::up();
        let found = collect(cx, || (0..20).for_each(|_| loopback.turn()));
        let addresses = addresses(&found);
        assert!(symbols().any_in("udp_sendmsg", &addresses), "what sends is the thread's own");
        in_none_of(DELIVERY, &addresses);
    }),
];
