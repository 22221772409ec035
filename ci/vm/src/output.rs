//! Prints the output for the caller. A command that lost output has failed, whatever its exit
//! status would have been.

use crate::error::{Error, Phase, Result};
use crate::guest::Stream;
use crate::target::Target;
use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stderr, stdout};
use std::sync::OnceLock;

/// The first failed write.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints on standard output.
pub fn print(text: &str) {
    write(Stream::Out, text.as_bytes());
}

/// Writes to a standard stream immediately. A reader that closed its end wanted no more, so nothing
/// is lost.
pub fn write(stream: Stream, bytes: &[u8]) {
    let (name, written) = match stream {
        Stream::Out => {
            let mut out = stdout().lock();
            ("standard output", out.write_all(bytes).and_then(|()| out.flush()))
        }
        Stream::Err => ("standard error", stderr().lock().write_all(bytes)),
    };
    if let Err(error) = written {
        if error.kind() != ErrorKind::BrokenPipe {
            LOST.get_or_init(|| format!("cannot write to {name}: {error}"));
        }
    }
}

/// Fails if output was lost.
pub fn lost() -> Result<()> {
    LOST.get().map_or(Ok(()), |why| Err(Error::unavailable(Phase::Output, why)))
}

/// Reports why a target has no verdict and returns that exit status. Usage errors are passed on, as
/// they do not concern one target.
pub fn no_verdict(target: &Target, error: Error) -> Result<u8> {
    match error {
        Error::Usage(_) => Err(error),
        Error::Unavailable(_) | Error::NotGiven(_) => {
            complain(target, &error);
            Ok(error.status())
        }
    }
}

/// Prints a target's problem on standard error.
pub(crate) fn complain(target: &Target, why: &dyn Display) {
    eprintln!("kcov-vm: {}: {why}", target.name);
}
