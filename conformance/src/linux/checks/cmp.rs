//! Comparison operands that only Linux promises, or that only its calls are known to compare.

pub(super) mod full;

pub(super) mod life;
pub(super) mod operands;

pub(super) mod soft;

use super::calls::{self, WIDE};
use crate::check::{Context, checks};
use crate::checks::shared::cmp::{Comparison, collect};
use kcov_sys::linux::{KCOV_CMP_CONST, kcov_cmp_size};

checks! {
    "cmp.type-is-that-of-the-operands": type_is_that_of_the_operands,
    "cmp.type-of-64-bit-operands": type_of_64_bit_operands,
}

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

fn type_is_that_of_the_operands(cx: &Context) {
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
}

fn type_of_64_bit_operands(cx: &Context) {
    let constants = compared(cx, calls::compare_long, kcov_cmp_size(3) | KCOV_CMP_CONST, WIDE);
    assert!(constants.iter().all(|&constant| constant <= 1_000_000_000), "{constants:x?}");
    let limits = compared(cx, calls::compare_longs, kcov_cmp_size(3), WIDE);
    assert!(limits.contains(&(WIDE - 1)), "{limits:x?}");
    let cases = compared(cx, calls::switch_over_long, kcov_cmp_size(3) | KCOV_CMP_CONST, WIDE);
    assert!(cases.contains(&0) && cases.contains(&1), "{cases:x?}");
}
