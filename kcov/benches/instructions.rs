//! Counts the instructions for reading a trace with callgrind, compared with the same loop in C at
//! -O2 and with the C header, on a synthetic buffer of 65535 PCs.
//!
//! Each figure is the slope between two numbers of passes, which excludes the start of the program.
//! `cargo bench -p kcov --bench instructions`; needs valgrind and a C compiler.

use kcov::mode::TracePc;
use kcov::{Pc, Trace};
use std::error::Error;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::{env, fs, process};

const WORDS: u64 = 65536;
const FEW: u64 = 2;
const MANY: u64 = 12;

/// The loops of the C program.
const IN_C: [(&str, &str); 3] =
    [("C loop", "walk"), ("C loop, atomic loads", "walk-atomic"), ("kcov.h", "walk-header")];

/// Prints the figures. In a process under callgrind, walks a buffer instead.
fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).filter(|arg| arg != "--bench").collect();
    if let [_, passes] = args.as_slice() {
        walk(passes.parse()?);
        return Ok(());
    }
    let c = env::temp_dir().join(format!("kcov-callgrind-{}", process::id()));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/walk.c");
    let compiled = Command::new("cc").args(["-O2", "-o"]).args([&c, &source]).status()?;
    if !compiled.success() {
        return Err(format!("cc: {compiled}").into());
    }
    for (name, what) in IN_C {
        print(name, &c, what)?;
    }
    fs::remove_file(c)?;
    print("Trace of TracePc", &env::current_exe()?, "walk")
}

fn walk(passes: u64) {
    let pcs = (1..WORDS).map(|index| 0xffff_ffff_8100_0000 + index * 80);
    let buffer: Vec<_> = [WORDS - 1].into_iter().chain(pcs).map(AtomicU64::new).collect();
    for _ in 0..passes {
        let pcs = Trace::from_words(black_box(&buffer), TracePc).iter().map(Pc::address);
        black_box(pcs.fold(0, |all, pc| all ^ pc));
    }
}

fn print(name: &str, program: &Path, what: &str) -> Result<(), Box<dyn Error>> {
    let slope = (instructions(program, what, MANY)? - instructions(program, what, FEW)?)
        / (MANY - FEW) as f64;
    println!("{name:<24}{:>8.3} instructions per PC", slope / (WORDS - 1) as f64);
    Ok(())
}

fn instructions(program: &Path, what: &str, passes: u64) -> Result<f64, Box<dyn Error>> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
    let output = valgrind.arg(program).args([what, &passes.to_string()]).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find_map(|line| line.split_once("Collected : "));
    let (_, count) = count.ok_or_else(|| format!("no count in the output of valgrind:\n{text}"))?;
    Ok(count.trim().parse()?)
}
