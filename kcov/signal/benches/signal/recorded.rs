//! Traces of a real kernel, recorded in a guest. `examples/record.rs` says how.

use super::Case;
use kcov_signal::Ranges;
use std::collections::BTreeMap;

const TRACES: &[(&str, &[u8])] = &[
    ("file system", include_bytes!("../traces/files")),
    ("io_uring", include_bytes!("../traces/io-uring")),
    ("sockets", include_bytes!("../traces/sockets")),
    ("processes", include_bytes!("../traces/processes")),
    ("mixed, long", include_bytes!("../traces/mixed")),
];

/// Percentage of new PCs in a trace, in the cases with new ones.
const NEW: usize = 5;

pub fn cases() -> Vec<Case> {
    let traces: Vec<(&str, Vec<u64>)> =
        TRACES.iter().map(|(name, bytes)| (*name, unpack(bytes))).collect();
    // The PCs seen before, in traces of all kinds.
    let mut all: Vec<u64> = traces.iter().flat_map(|(_, trace)| trace).copied().collect();
    all.sort_unstable();
    all.dedup();
    let (first, last) = (all[0], all[all.len() - 1]);
    let ranges = Ranges::single(first..last + 1).expect("the text of a small kernel");
    let mut cases = Vec::new();
    for (name, trace) in traces {
        let known = without(&all, &trace);
        for (new, known) in [("0 %", all.clone()), ("5 %", known)] {
            let (name, ranges) = (format!("recorded: {name}, {new} new"), ranges.clone());
            cases.push(Case { name, ranges, known, trace: trace.clone() });
        }
    }
    cases
}

/// All PCs except some that make up the new share of the trace.
fn without(all: &[u64], trace: &[u64]) -> Vec<u64> {
    let mut times = BTreeMap::new();
    trace.iter().for_each(|pc| *times.entry(*pc).or_insert(0) += 1);
    let mut left = trace.len() * NEW / 100;
    let mut known = all.to_vec();
    let mut pcs: Vec<u64> = times.keys().copied().collect();
    // A pseudorandom order that is the same in each run.
    pcs.sort_by_key(|pc| pc.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for pc in pcs {
        if times[&pc] <= left {
            left -= times[&pc];
            known.remove(known.binary_search(&pc).expect("one of all"));
        }
    }
    known
}

/// The inverse of `pack` in `examples/record.rs`.
fn unpack(packed: &[u8]) -> Vec<u64> {
    let bytes = miniz_oxide::inflate::decompress_to_vec(packed).expect("a stored trace");
    let (mut trace, mut pc, mut step, mut shift) = (Vec::new(), 0u64, 0u64, 0);
    for byte in bytes {
        step |= u64::from(byte & 0x7f) << shift;
        shift += 7;
        if byte < 0x80 {
            pc = pc.wrapping_add(step >> 1 ^ (step & 1).wrapping_neg());
            trace.push(pc);
            (step, shift) = (0, 0);
        }
    }
    trace
}
