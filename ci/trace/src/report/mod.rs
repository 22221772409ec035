//! Prints and writes the reports.

pub mod folded;
pub mod lcov;
pub mod text;

use crate::error::Error;
use std::fmt;
use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write as _};

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

/// Standard output. A report of millions of lines is not kept in memory.
pub struct Output {
    out: BufWriter<StdoutLock<'static>>,
    /// The first error. Nothing is written after it.
    error: Option<io::Error>,
}

impl Output {
    pub fn new() -> Output {
        Output { out: BufWriter::new(io::stdout().lock()), error: None }
    }

    /// Writes the rest. A closed reader is not an error.
    pub fn end(mut self) -> Result<(), Error> {
        match self.error.or_else(|| self.out.flush().err()) {
            Some(error) if error.kind() != ErrorKind::BrokenPipe => {
                Err(Error::of("cannot write to standard output")(error))
            }
            _ => Ok(()),
        }
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.error.is_none() {
            self.error = self.out.write_all(text.as_bytes()).err();
        }
        Ok(())
    }
}
