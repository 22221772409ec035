//! `kcov-trace`: lists the kernel code that a command executes. See `README.md`.
//!
//! `record` collects, `coverage` holds and stores the data, `kernel` identifies kernels, `symbols`
//! finds names and lines, `modules` lists loaded modules, `report` prints and writes, and `man` makes
//! the manual page.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kcov-trace sets the traced threads' registers and supports only Linux on x86_64");

mod cli;
mod coverage;
mod kernel;
mod man;
mod modules;
mod record;
mod report;
mod symbols;

use std::fmt::Display;
use std::io;
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

/// Why there is no report: the failed operation and the remedy.
#[derive(Debug)]
pub struct Error(String);

impl Error {
    /// Makes an error from a file, or another subject, and what is wrong with it.
    pub fn about(subject: impl Display, why: impl Display) -> Error {
        Error(format!("{subject}: {why}"))
    }

    /// Makes an error from the failed operation.
    pub fn of(doing: impl Display) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::about(doing, error)
    }
}

impl Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<String> for Error {
    fn from(text: String) -> Error {
        Error(text)
    }
}
