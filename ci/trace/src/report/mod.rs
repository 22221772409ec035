//! What is printed and written.

pub mod drcov;
pub mod lcov;
pub mod text;

use crate::cli::Error;
use std::io::{ErrorKind, Write as _};

/// What is printed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A line per function.
    #[default]
    Functions,
    /// A line per program counter, with what was inlined there.
    Lines,
    /// The program counters, as recorded.
    Pcs,
    /// Nothing.
    Quiet,
}

/// Prints. A reader that closed its end wanted no more.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::of("cannot write to standard output")(error))
        }
        _ => Ok(()),
    }
}
