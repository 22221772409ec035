//! A kernel loop whose length the caller chooses. A comparison that has just been recorded is
//! recorded again.

use crate::check::{Context, checks};
use crate::checks::shared::cmp::{Comparison, collect};
use crate::checks::shared::pc::turns::{TURNS, skip_slashes};
use kcov_sys::linux::{KCOV_CMP_CONST, kcov_cmp_size};
use std::collections::HashMap;

checks! {
    each_turn_is_recorded needs(Comparisons),
}

/// The maximum number of comparisons of two slashes at one address.
fn most(comparisons: &[Comparison]) -> usize {
    const SLASH: u64 = b'/' as u64;
    let kind = kcov_cmp_size(0) | KCOV_CMP_CONST;
    let mut times: HashMap<u64, usize> = HashMap::new();
    for comparison in comparisons {
        if (comparison.kind, comparison.first, comparison.second) == (kind, SLASH, SLASH) {
            *times.entry(comparison.address).or_default() += 1;
        }
    }
    times.into_values().max().unwrap_or(0)
}

fn each_turn_is_recorded(cx: &Context) {
    // Nothing that interrupts the call compares slashes.
    let times = TURNS.map(|turns| most(&collect(cx, || skip_slashes(turns))));
    let more = times.map(|count| count.wrapping_sub(times[0]));
    assert_eq!(more, TURNS.map(|turns| turns - TURNS[0]), "comparisons of slashes: {times:?}");
}
