//! Prints and writes the reports.

pub mod folded;
pub mod lcov;
pub mod text;

use crate::error::Error;
use std::io::{ErrorKind, Write as _};

/// The output on standard output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Style {
    /// A line for each function.
    #[default]
    Functions,
    /// A line for each program counter, with inlined functions.
    Lines,
    /// The recorded program counters.
    Pcs,
    /// Nothing.
    Quiet,
}

/// Prints text. A closed reader is not an error.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Error::of("cannot write to standard output")(error))
        }
        _ => Ok(()),
    }
}
