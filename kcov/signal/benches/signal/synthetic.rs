//! Traces of a synthetic kernel: 1.9 million places in 176 MB of text, as in a kernel built for
//! fuzzing.

use super::Case;
use kcov_signal::Ranges;
use std::collections::BTreeSet;

const TEXT: u64 = 0xffff_ffff_8100_0000;
const BYTES: u64 = 176_000_000;
const SITES: usize = 1_900_000;
const KNOWN: usize = 330_000;

/// Pseudorandom numbers, the same in each run (xorshift64*).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        ((u128::from(self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)) * end as u128) >> 64) as usize
    }
}

pub fn cases() -> Vec<Case> {
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    // Blocks of 5 bytes, for only a call of the hook, to some 180.
    let mut at = TEXT;
    let sites: Vec<u64> = (0..SITES)
        .map(|_| {
            at += 5 + chance.below(2 * BYTES as usize / SITES - 9) as u64;
            at
        })
        .collect();
    assert!(at < TEXT + BYTES);
    // Functions of 1 to 40 blocks.
    let mut functions = Vec::new();
    let mut rest = sites.as_slice();
    while !rest.is_empty() {
        let (function, after) = rest.split_at((1 + chance.below(40)).min(rest.len()));
        functions.push(function);
        rest = after;
    }
    // The known PCs: two thirds of the places of some functions.
    let mut known = BTreeSet::new();
    let mut reached: Vec<Vec<u64>> = Vec::new();
    while known.len() < KNOWN {
        let function = functions[chance.below(functions.len())];
        let part: Vec<u64> = function.iter().copied().filter(|_| chance.below(3) > 0).collect();
        known.extend(&part);
        if !part.is_empty() {
            reached.push(part);
        }
    }
    let unseen: Vec<u64> = sites.into_iter().filter(|site| !known.contains(site)).collect();
    let known: Vec<u64> = known.into_iter().collect();

    let mut cases = Vec::new();
    for (length, name) in [(4 << 10, "4K"), (64 << 10, "64K"), (512 << 10, "512K")] {
        let seen = trace(&mut chance, &reached, length);
        for (per_100_000, share) in [(0, "0 %"), (50, "0.05 %"), (5000, "5 %")] {
            let mut trace = seen.clone();
            for pc in &mut trace {
                if chance.below(100_000) < per_100_000 {
                    *pc = unseen[chance.below(unseen.len())];
                }
            }
            cases.push(Case {
                name: format!("synthetic {name}, {share} new"),
                ranges: Ranges::single(TEXT..TEXT + BYTES).expect("less than the limit"),
                known: known.clone(),
                trace,
            });
        }
    }
    cases
}

/// A walk through functions, some of them in loops. Longer walks reach more functions.
fn trace(chance: &mut Chance, reached: &[Vec<u64>], length: usize) -> Vec<u64> {
    let set: Vec<&Vec<u64>> =
        (0..length / 40).map(|_| &reached[chance.below(reached.len())]).collect();
    let mut trace = Vec::with_capacity(length + 4096);
    while trace.len() < length {
        // A group of functions that call each other, in a loop of one to some ten iterations.
        let first = chance.below(set.len());
        let group = &set[first..(first + 1 + chance.below(6)).min(set.len())];
        for _ in 0..1 + chance.below(4) * chance.below(4) {
            group.iter().for_each(|function| trace.extend_from_slice(function));
        }
    }
    trace.truncate(length);
    trace
}
