//! Counts the instructions of this program and of a C program, with valgrind's callgrind.
//!
//! Each figure is the slope between two numbers of passes, which excludes the start of the program.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

const FEW: u64 = 2;
const MANY: u64 = 12;

/// A line of the report.
pub struct Row {
    pub name: &'static str,
    /// Whether the C program has this row.
    pub in_c: bool,
    pub what: &'static str,
    /// Divisor for the instructions of a pass.
    pub units: usize,
}

/// Prints the rows. In a process under callgrind, does the work of one row instead.
pub fn main(c_source: &Path, rows: &[Row], work: impl FnOnce(&str, u64)) -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.as_slice() {
        [] => match report(c_source, rows) {
            Ok(()) => ExitCode::SUCCESS,
            Err(why) => {
                eprintln!("cannot count instructions: {why}");
                ExitCode::from(69)
            }
        },
        [what, passes] => {
            work(what, passes.parse().expect("a number of passes"));
            ExitCode::SUCCESS
        }
        _ => ExitCode::from(2),
    }
}

fn report(c_source: &Path, rows: &[Row]) -> Result<(), String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let c = compile(c_source)?;
    println!("{:<32}instructions", "");
    for row in rows {
        let slope = slope(if row.in_c { &c } else { &this }, row.what)?;
        println!("{:<32}{:>12.3}", row.name, slope / row.units as f64);
    }
    // A leftover file in the temporary directory does not affect the measurement.
    let _ = std::fs::remove_file(c);
    Ok(())
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

fn compile(source: &Path) -> Result<PathBuf, String> {
    let program = std::env::temp_dir().join(format!("kcov-callgrind-{}", std::process::id()));
    let status = Command::new("cc")
        .args(["-O2", "-o"])
        .args([&program, source])
        .status()
        .map_err(|error| format!("cc: {error}"))?;
    status.success().then_some(program).ok_or_else(|| format!("cc ended with {status}"))
}
