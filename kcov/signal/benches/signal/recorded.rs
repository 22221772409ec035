//! Traces of a real kernel, recorded in a guest by `examples/record.rs`, which says how.

use super::Case;
use kcov::signal::Ranges;

const TRACES: &[(&str, &[u8])] = &[
    ("file system", include_bytes!("../traces/files")),
    ("io_uring", include_bytes!("../traces/io-uring")),
    ("sockets", include_bytes!("../traces/sockets")),
    ("processes", include_bytes!("../traces/processes")),
    ("mixed, long", include_bytes!("../traces/mixed")),
];

pub fn cases() -> Vec<Case> {
    let traces: Vec<(&str, Vec<u64>)> =
        TRACES.iter().map(|(name, bytes)| (*name, unpack(bytes))).collect();
    // Everything was seen before, in traces of all kinds.
    let mut known: Vec<u64> = traces.iter().flat_map(|(_, trace)| trace).copied().collect();
    known.sort_unstable();
    known.dedup();
    let (first, last) = (known[0], known[known.len() - 1]);
    traces
        .into_iter()
        .map(|(name, trace)| Case {
            name: format!("recorded: {name}"),
            ranges: Ranges::single(first..last + 1).expect("the text of a small kernel"),
            known: known.clone(),
            trace,
        })
        .collect()
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
