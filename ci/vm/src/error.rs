//! Errors: the ways to end without a verdict.

use std::fmt;
use std::path::{Path, PathBuf};

/// The exit status of a run in which every check ran and passed.
pub const STATUS_PASSED: u8 = 0;
/// The exit status of a run in which a check failed.
pub const STATUS_FAILED: u8 = 1;
/// The exit status of a usage error.
pub(crate) const STATUS_USAGE: u8 = 2;
/// The exit status of a run without a verdict (`EX_UNAVAILABLE`).
pub const STATUS_UNAVAILABLE: u8 = 69;

/// The result of an operation that can prevent a verdict.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no verdict.
#[derive(Debug)]
pub enum Error {
    /// The command line is wrong.
    Usage(String),
    /// The infrastructure failed.
    Unavailable(Unavailable),
    /// The target needs an option that the user did not give, or none of the
    /// named checks is for it. A run on all targets continues without it.
    NotGiven(String),
}

/// A failure of the infrastructure, not of the program under test.
#[derive(Clone, Debug)]
pub struct Unavailable {
    /// The phase that failed.
    pub phase: Phase,
    /// The problem, in one line.
    pub message: String,
    /// More lines that help, such as the end of a log.
    pub detail: Vec<String>,
    /// The log directory.
    pub logs: Option<PathBuf>,
}

/// The phases of a run.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Reading the targets.
    Targets,
    /// Getting the kernel's source.
    Source,
    /// Building the kernel.
    Build,
    /// Checking a kernel that the user gave.
    Kernel,
    /// Making the guest's image.
    Image,
    /// From the start of the guest to its init's first message.
    Boot,
    /// Running the program.
    Program,
    /// From the end of the program to the end of the guest.
    End,
    /// Judging the program's results.
    Verdict,
    /// Writing the report.
    Output,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&format!("{self:?}").to_lowercase())
    }
}

/// Joins a message of several lines, such as toml's, into one.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Error {
    /// Makes a usage error.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// Makes a failure of the infrastructure.
    pub fn unavailable(phase: Phase, message: impl Into<String>) -> Self {
        Self::Unavailable(Unavailable::new(phase, message))
    }

    /// The error's exit status.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => STATUS_USAGE,
            Self::Unavailable(_) | Self::NotGiven(_) => STATUS_UNAVAILABLE,
        }
    }
}

impl Unavailable {
    /// Makes a failure without logs.
    pub fn new(phase: Phase, message: impl Into<String>) -> Self {
        Self { phase, message: message.into(), detail: Vec::new(), logs: None }
    }

    /// Adds lines of detail.
    #[must_use]
    pub(crate) fn detail(mut self, lines: Vec<String>) -> Self {
        self.detail = lines;
        self
    }

    /// Adds the log directory.
    #[must_use]
    pub fn logs(mut self, path: &Path) -> Self {
        self.logs = Some(path.to_path_buf());
        self
    }
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.phase, self.message)?;
        if let Some(logs) = &self.logs {
            write!(f, " (logs: {})", logs.display())?;
        }
        self.detail.iter().try_for_each(|line| write!(f, "\n    {line}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Usage(message) => f.write_str(message),
            Self::NotGiven(what) => write!(f, "not run: {what}"),
            Self::Unavailable(failure) => failure.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<Unavailable> for Error {
    fn from(failure: Unavailable) -> Self {
        Self::Unavailable(failure)
    }
}

/// Converts any error into a failure of the infrastructure.
pub trait OrUnavailable<T> {
    /// Names the phase and the operation.
    fn or_unavailable(self, phase: Phase, doing: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> OrUnavailable<T> for std::result::Result<T, E> {
    fn or_unavailable(self, phase: Phase, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::unavailable(phase, format!("{doing}: {error}")))
    }
}
