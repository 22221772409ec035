//! Errors.

use std::fmt::Display;
use std::io;

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
