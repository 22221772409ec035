//! Counts the instructions for reading a trace with callgrind, compared with the same loop in C at
//! -O2 and with the C header, on a synthetic buffer of 65535 PCs.
//!
//! `cargo bench -p kcov --bench instructions`; needs valgrind and a C compiler.

mod callgrind;

use callgrind::Row;
use kcov::mode::{AnyMode, TraceCmp, TracePc};
use kcov::{AnyRecord, Pc, Trace};
use std::hint::black_box;
use std::path::Path;
use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 65536;
const TEXT: u64 = 0xffff_ffff_8100_0000;
const STEP: u64 = 80;

const ROWS: &[Row] = &[
    Row { name: "C loop, per PC", in_c: true, what: "walk", units: WORDS - 1 },
    Row { name: "C loop, atomic loads, per PC", in_c: true, what: "walk-atomic", units: WORDS - 1 },
    Row { name: "kcov.h, per PC", in_c: true, what: "walk-header", units: WORDS - 1 },
    Row { name: "Trace of TracePc, per PC", in_c: false, what: "walk", units: WORDS - 1 },
    Row { name: "Trace of AnyMode, per PC", in_c: false, what: "walk-any", units: WORDS - 1 },
    Row {
        name: "Trace of TraceCmp, per record",
        in_c: false,
        what: "walk-cmp",
        units: (WORDS - 1) / 4,
    },
];

fn main() -> ExitCode {
    let c = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/walk.c");
    callgrind::main(&c, ROWS, work)
}

fn work(what: &str, passes: u64) {
    let pcs = (0..WORDS as u64).map(|index| TEXT + index * STEP);
    let buffer: Vec<AtomicU64> = pcs.map(AtomicU64::new).collect();
    let count = if what == "walk-cmp" { (WORDS - 1) / 4 } else { WORDS - 1 };
    buffer[0].store(count as u64, Ordering::Relaxed);
    for _ in 0..passes {
        let buffer = black_box(buffer.as_slice());
        match what {
            "walk" => walk(buffer),
            "walk-any" => walk_any(buffer),
            "walk-cmp" => walk_cmp(buffer),
            _ => panic!("no such work: {what}"),
        }
    }
}

fn walk(buffer: &[AtomicU64]) {
    let pcs = Trace::from_words(buffer, TracePc).iter().map(Pc::address);
    black_box(pcs.fold(0, |all, pc| all ^ pc));
}

fn walk_any(buffer: &[AtomicU64]) {
    let pcs = Trace::from_words(buffer, black_box(AnyMode::TracePc)).iter();
    black_box(pcs.map(AnyRecord::pc).fold(0, |all, pc| all ^ pc.address()));
}

fn walk_cmp(buffer: &[AtomicU64]) {
    let trace = Trace::from_words(buffer, TraceCmp);
    black_box(trace.iter().fold(0, |all, comparison| {
        let (first, second) = comparison.operands();
        all ^ comparison.raw_type() ^ first ^ second ^ comparison.pc().address()
    }));
}
