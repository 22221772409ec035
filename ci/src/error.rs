//! The ways in which this program ends without a verdict.

use std::fmt;
use std::path::{Path, PathBuf};

/// The exit status of a run in which every check ran and passed.
pub const STATUS_PASSED: u8 = 0;
/// The exit status of a run in which a check failed.
pub const STATUS_FAILED: u8 = 1;
/// The exit status for a command line that cannot be carried out.
pub const STATUS_USAGE: u8 = 2;
/// The exit status of a run without a verdict (`EX_UNAVAILABLE`).
pub const STATUS_UNAVAILABLE: u8 = 69;

/// Why a failure of `write!` is none of them.
pub(crate) const WRITING: &str = "writing to a string cannot fail";

/// The result of anything that can leave us without a verdict.
pub type Result<T> = std::result::Result<T, Error>;

/// Why there is no verdict.
#[derive(Debug)]
pub enum Error {
    /// The command line asks for something that does not exist.
    Usage(String),
    /// The machinery gave up.
    Unavailable(Unavailable),
    /// The target needs something that only the user can give, and it was not
    /// given, or none of the checks that are named is for it. A run over all
    /// targets goes on without it.
    NotGiven(String),
}

/// A failure of the machinery: of anything but the program under test.
#[derive(Clone, Debug)]
pub struct Unavailable {
    /// How far things had come.
    pub phase: Phase,
    /// What happened, in one line.
    pub message: String,
    /// More lines that help, such as the end of a log.
    pub detail: Vec<String>,
    /// Where the logs are.
    pub logs: Option<PathBuf>,
}

/// The steps on the way to a verdict.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Phase {
    /// Reading what the targets are.
    Targets,
    /// Getting the kernel's source.
    Source,
    /// Building the kernel.
    Build,
    /// Looking at a kernel that the user gave.
    Kernel,
    /// Making what the guest boots.
    Image,
    /// From the start of the guest to the first word of its init.
    Boot,
    /// While the program runs.
    Program,
    /// From the end of the program to the end of the guest.
    End,
    /// Judging what the program said.
    Verdict,
    /// Writing down what came of it.
    Output,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Targets => "targets",
            Self::Source => "source",
            Self::Build => "build",
            Self::Kernel => "kernel",
            Self::Image => "image",
            Self::Boot => "boot",
            Self::Program => "program",
            Self::End => "end",
            Self::Verdict => "verdict",
            Self::Output => "output",
        })
    }
}

/// Text over several lines, such as toml's messages, in one.
pub(crate) fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

impl Error {
    /// A command line that cannot be carried out.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::Usage(message.into())
    }

    /// A failure of the machinery.
    pub fn unavailable(phase: Phase, message: impl Into<String>) -> Self {
        Self::Unavailable(Unavailable::new(phase, message))
    }

    /// The exit status that says so.
    pub fn status(&self) -> u8 {
        match self {
            Self::Usage(_) => STATUS_USAGE,
            Self::Unavailable(_) | Self::NotGiven(_) => STATUS_UNAVAILABLE,
        }
    }
}

impl Unavailable {
    /// A failure without logs.
    pub fn new(phase: Phase, message: impl Into<String>) -> Self {
        Self { phase, message: message.into(), detail: Vec::new(), logs: None }
    }

    /// Adds lines that help.
    #[must_use]
    pub fn detail(mut self, lines: Vec<String>) -> Self {
        self.detail = lines;
        self
    }

    /// Adds where the logs are.
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

/// Turns any error into a failure of the machinery.
pub trait OrUnavailable<T> {
    /// Names the phase and what was being done.
    fn or_unavailable(self, phase: Phase, doing: impl fmt::Display) -> Result<T>;
}

impl<T, E: fmt::Display> OrUnavailable<T> for std::result::Result<T, E> {
    fn or_unavailable(self, phase: Phase, doing: impl fmt::Display) -> Result<T> {
        self.map_err(|error| Error::unavailable(phase, format!("{doing}: {error}")))
    }
}
