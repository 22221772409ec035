//! What is printed and written.

pub mod drcov;
pub mod lcov;
pub mod text;

use std::io::Write as _;

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

/// Prints, whether or not anybody reads it.
pub fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
