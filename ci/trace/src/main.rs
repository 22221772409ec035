//! `kcov-trace`: which kernel code a command goes through. See `README.md`.
//!
//! `record` collects, `coverage` is what was collected and how it is written down, `symbols` gives
//! names and lines, `hooks` finds what could have been covered, `modules` knows what was loaded, `report` prints and writes.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kcov-trace steers the traced threads' registers: Linux on x86_64 only");

mod cli;
mod coverage;
mod hooks;
mod modules;
mod record;
mod report;
mod symbols;

use std::process::ExitCode;

fn main() -> ExitCode {
    match cli::run(std::env::args_os().skip(1)) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("kcov-trace: {error}");
            ExitCode::from(error.status())
        }
    }
}
