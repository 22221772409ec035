//! `kcov-trace`: lists the kernel code that a command executes. See `README.md`.
//!
//! `record` collects, `coverage` holds and stores the data, `symbols` finds names and lines,
//! `modules` lists loaded modules, and `report` prints and writes.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kcov-trace sets the traced threads' registers and supports only Linux on x86_64");

mod cli;
mod coverage;
mod error;
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
