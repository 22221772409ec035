//! A kernel loop whose length the caller chooses. A comparison that has just been recorded is
//! recorded again.

use crate::check::{Context, checks};
use crate::checks::shared::cmp::{Comparison, collect};
use crate::checks::shared::pc::turns::{TURNS, poll_nothing, skip_slashes};
use kcov_sys::linux::{KCOV_CMP_CONST, kcov_cmp_size};
use std::collections::HashMap;

checks! {
    "cmp.turns.each-turn-is-recorded": each_turn_is_recorded,
}

const SLASH: u64 = b'/' as u64;

/// The maximum number of comparisons of this kind and these operands at one address.
fn most(comparisons: &[Comparison], kind: u64, first: u64, second: u64) -> usize {
    let mut times: HashMap<u64, usize> = HashMap::new();
    for comparison in comparisons {
        if (comparison.kind, comparison.first, comparison.second) == (kind, first, second) {
            *times.entry(comparison.address).or_default() += 1;
        }
    }
    times.into_values().max().unwrap_or(0)
}

/// Whether Clang built this kernel. Clang leaves out the comparison that ends a loop.
fn is_built_by_clang() -> bool {
    std::fs::read_to_string("/proc/version").is_ok_and(|text| text.contains("clang version"))
}

fn each_turn_is_recorded(cx: &Context) {
    // No interrupt compares these values.
    let times = TURNS.map(|turns| {
        if is_built_by_clang() {
            let kind = kcov_cmp_size(2) | KCOV_CMP_CONST;
            most(&collect(cx, || poll_nothing(turns)), kind, 0, u32::MAX.into())
        } else {
            let kind = kcov_cmp_size(0) | KCOV_CMP_CONST;
            most(&collect(cx, || skip_slashes(turns)), kind, SLASH, SLASH)
        }
    });
    let more = times.map(|count| count.wrapping_sub(times[0]));
    assert_eq!(more, TURNS.map(|turns| turns - TURNS[0]), "comparisons in each call: {times:?}");
}
