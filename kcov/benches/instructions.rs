//! Counts the instructions that reading costs, with callgrind, against the same loops in C as the
//! machine's compiler makes them with -O2.
//!
//! `cargo bench -p kcov --bench instructions`; needs valgrind and a C compiler. The figures are the
//! slope between two numbers of passes over a synthetic buffer of 65535 PCs, so that starting the
//! program does not count.

use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use kcov::signal::{NoveltyMap, Ranges};
use kcov::{AnyRecord, Pc, Trace};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicU64, Ordering};

const WORDS: usize = 65536;
const TEXT: u64 = 0xffff_ffff_8100_0000;
/// Bytes from one PC to the next, so that no cell of a large text is crowded.
const STEP: u64 = 80;
const FEW: u64 = 2;
const MANY: u64 = 12;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.as_slice() {
        [] => report(),
        [what, passes] => {
            work(what, passes.parse().expect("a number of passes"));
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

/// The work to measure, in a process of its own under callgrind.
fn work(what: &str, passes: u64) {
    let pcs = (0..WORDS as u64).map(|index| TEXT + index * STEP);
    let buffer: Vec<AtomicU64> = pcs.map(AtomicU64::new).collect();
    let count = if what.ends_with("cmp") { (WORDS - 1) / 4 } else { WORDS - 1 };
    buffer[0].store(count as u64, Ordering::Relaxed);
    let known = what.starts_with("novelty").then(|| {
        // A large text has another kind of map.
        let bytes = if what == "novelty-large" { 176_000_000 } else { WORDS as u64 * STEP };
        let text = Ranges::single(TEXT..TEXT + bytes).expect("less than the limit");
        let mut map = NoveltyMap::new(text);
        map.merge(Trace::from_words(&buffer, TracePc));
        map
    });
    for _ in 0..passes {
        let buffer = black_box(buffer.as_slice());
        match what {
            "walk" => walk(buffer),
            "walk-any" => walk_any(buffer),
            "walk-cmp" => walk_cmp(buffer),
            "novelty" | "novelty-large" => {
                let known = known.as_ref().expect("made for this work");
                assert!(!black_box(known.has_new(Trace::from_words(buffer, TracePc))));
            }
            _ => panic!("no such work: {what}"),
        }
    }
}

fn walk(buffer: &[AtomicU64]) {
    let pcs = Trace::from_words(buffer, TracePc).into_iter().map(Pc::address);
    black_box(pcs.fold(0, |all, pc| all ^ pc));
}

fn walk_any(buffer: &[AtomicU64]) {
    let pcs = Trace::from_words(buffer, black_box(AnyMode::TracePc)).into_iter();
    black_box(pcs.map(AnyRecord::pc).fold(0, |all, pc| all ^ pc.address()));
}

fn walk_cmp(buffer: &[AtomicU64]) {
    let trace = Trace::from_words(buffer, TraceCmp);
    assert_eq!(trace.mode().any(), AnyMode::TraceCmp);
    black_box(trace.into_iter().fold(0, |all, comparison| {
        let (first, second) = comparison.operands();
        all ^ comparison.raw_type() ^ first ^ second ^ comparison.pc().address()
    }));
}

fn report() -> ExitCode {
    let this = std::env::current_exe().expect("the path of this program");
    let c = match compile_c() {
        Ok(c) => c,
        Err(why) => {
            eprintln!("cannot compare with C: {why}");
            return ExitCode::from(69);
        }
    };
    let rows: [(&str, &Path, &str, usize); 7] = [
        ("C loop, per PC", &c, "walk", WORDS - 1),
        ("Trace of TracePc, per PC", &this, "walk", WORDS - 1),
        ("Trace of AnyMode, per PC", &this, "walk-any", WORDS - 1),
        ("Trace of TraceCmp, per record", &this, "walk-cmp", (WORDS - 1) / 4),
        ("C loop, anything new, per PC", &c, "novelty", WORDS - 1),
        ("NoveltyMap, per PC", &this, "novelty", WORDS - 1),
        ("NoveltyMap of 176 MB, per PC", &this, "novelty-large", WORDS - 1),
    ];
    println!("{:<32}instructions", "");
    for (name, program, what, units) in rows {
        match slope(program, what) {
            Ok(slope) => println!("{name:<32}{:>12.3}", slope / units as f64),
            Err(why) => {
                eprintln!("cannot count instructions: {why}");
                return ExitCode::from(69);
            }
        }
    }
    // A program left in the temporary directory is no failure of the measurement.
    let _ = std::fs::remove_file(c);
    ExitCode::SUCCESS
}

/// Instructions of one pass.
fn slope(program: &Path, what: &str) -> Result<f64, String> {
    let few = instructions(program, what, FEW)?;
    let many = instructions(program, what, MANY)?;
    Ok((many as f64 - few as f64) / (MANY - FEW) as f64)
}

fn instructions(program: &Path, what: &str, passes: u64) -> Result<u64, String> {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args([what, &passes.to_string()])
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let text = String::from_utf8_lossy(&output.stderr);
    text.lines()
        .find_map(|line| line.split_once("Collected : ")?.1.trim().parse().ok())
        .ok_or_else(|| format!("no count in the output of valgrind:\n{text}"))
}

fn compile_c() -> Result<PathBuf, String> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/walk.c");
    let program = std::env::temp_dir().join(format!("kcov-walk-{}", std::process::id()));
    let status = Command::new("cc")
        .args(["-O2", "-o"])
        .args([&program, &source])
        .status()
        .map_err(|error| format!("cc: {error}"))?;
    status.success().then_some(program).ok_or_else(|| format!("cc ended with {status}"))
}
