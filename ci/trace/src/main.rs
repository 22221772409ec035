//! `kcov-trace`: lists the kernel code that a command executes. See `README.md`.
//!
//! `record` collects, `coverage` holds and stores the data, `kernel` identifies kernels, `symbols`
//! finds names and lines, `modules` lists loaded modules, and `report` prints and writes.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kcov-trace sets the traced threads' registers and supports only Linux on x86_64");

mod cli;
mod coverage;
mod error;
mod kernel;
mod modules;
mod record;
mod report;
mod symbols;

use std::process::ExitCode;

/// The status when kcov cannot be used, a file does not serve, or the time limit is reached.
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    let status = cli::run().unwrap_or_else(|error| {
        eprintln!("kcov-trace: {error}");
        UNAVAILABLE
    });
    ExitCode::from(status)
}
