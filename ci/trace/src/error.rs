//! The error of every step.

use std::{fmt, io};

/// An error that prevents a report.
#[derive(Debug)]
pub enum Error {
    /// The command line is wrong.
    Usage(String),
    /// An operation failed.
    Unavailable(String),
}

impl Error {
    /// The error's exit status.
    pub fn status(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Unavailable(_) => 69,
        }
    }

    /// Makes an error from the failed operation.
    pub fn of(doing: impl fmt::Display) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Unavailable(format!("{doing}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) | Error::Unavailable(text) => f.write_str(text),
        }
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Error {
        Error::Usage(format!("{error}; see kcov-trace --help"))
    }
}

impl From<kcov::Error> for Error {
    fn from(error: kcov::Error) -> Error {
        Error::Unavailable(error.to_string())
    }
}
