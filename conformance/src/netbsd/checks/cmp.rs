//! Comparison operands: promises that only NetBSD makes.

pub(super) mod full;
pub(super) mod operands;

use super::mapped;
use super::pc::ticks_add_nothing;
use crate::check::{Context, checks};
use crate::raw::KCOV_TRACE_CMP;
use crate::system::checks::calls::{MAGIC, switch_over_argument};
use kcov_sys::netbsd::{KCOV_CMP_CONST, kcov_cmp_size};

checks! {
    "cmp.interrupts-add-nothing": interrupts_add_nothing,
    "cmp.switch-is-constant": switch_is_constant,
    "cmp.switch-case-comes-first": switch_case_comes_first,
}

fn interrupts_add_nothing(cx: &Context) {
    ticks_add_nothing(cx, KCOV_TRACE_CMP);
}

/// The type and both operands of each comparison with the number. A switch makes several.
fn cases(cx: &Context) -> Vec<(u64, u64, u64)> {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_CMP).expect("enabled");
    map.reset();
    switch_over_argument();
    let words = map.copy(1, 4 * super::index(map.count()));
    device.disable().expect("disabled");
    let records = words.chunks_exact(4).map(|record| (record[0], record[1], record[2]));
    records.filter(|&(_, first, second)| [first, second].contains(&u64::from(MAGIC))).collect()
}

fn switch_is_constant(cx: &Context) {
    let cases = cases(cx);
    assert!(cases.len() > 1, "a switch: {cases:x?}");
    for (kind, _, _) in cases {
        assert_eq!(kind, KCOV_CMP_CONST | kcov_cmp_size(2));
    }
}

fn switch_case_comes_first(cx: &Context) {
    let cases = cases(cx);
    assert!(cases.len() > 1, "a switch: {cases:x?}");
    for (_, first, second) in cases {
        assert_ne!(first, u64::from(MAGIC));
        assert_eq!(second, u64::from(MAGIC));
    }
}
