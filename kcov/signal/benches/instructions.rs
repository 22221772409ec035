//! Counts the instructions of a map lookup with callgrind, compared with the same loop in C at -O2,
//! on a synthetic buffer of 65535 known PCs.
//!
//! `cargo bench -p kcov-signal --bench instructions`; needs valgrind and a C compiler.

// The measurement code of the crate `kcov`, in the same workspace.
#[path = "../../benches/callgrind/mod.rs"]
mod callgrind;

use callgrind::Row;
use kcov::Trace;
use kcov::mode::TracePc;
use kcov_signal::{NoveltyMap, Ranges};
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::AtomicU64;

const PCS: usize = 65535;
const TEXT: u64 = 0xffff_ffff_8100_0000;
/// Bytes between PCs, so that no cell of a large text is crowded.
const STEP: u64 = 80;

const ROWS: &[Row] = &[
    Row { name: "C loop, per PC", in_c: true, what: "novelty", units: PCS },
    Row { name: "NoveltyMap, per PC", in_c: false, what: "novelty", units: PCS },
    Row { name: "NoveltyMap of 176 MB, per PC", in_c: false, what: "novelty-large", units: PCS },
];

fn main() -> ExitCode {
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/novelty.c");
    callgrind::main(&c, ROWS, work)
}

fn work(what: &str, passes: u64) {
    let pcs = (0..PCS as u64).map(|index| TEXT + index * STEP);
    let buffer: Vec<AtomicU64> = [PCS as u64].into_iter().chain(pcs).map(AtomicU64::new).collect();
    // Large texts use another form of map.
    let bytes = match what {
        "novelty" => PCS as u64 * STEP,
        "novelty-large" => 176_000_000,
        _ => panic!("no such work: {what}"),
    };
    let text = Ranges::single(TEXT..TEXT + bytes).expect("less than the limit");
    let mut map = NoveltyMap::new(text);
    map.merge(Trace::from_words(&buffer, TracePc));
    for _ in 0..passes {
        let buffer = black_box(buffer.as_slice());
        assert!(!black_box(map.has_new(Trace::from_words(buffer, TracePc))));
    }
}
