//! Prints the output for the caller. A command that lost output has failed, whatever its exit
//! status would have been.

use crate::error::{Error, Phase, Result};
use crate::guest::Stream;
use crate::target::Target;
use rustix::fs::{Stat, fstat};
use std::fmt::Display;
use std::io::{ErrorKind, Write as _, stderr, stdout};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first failed write.
static LOST: OnceLock<String> = OnceLock::new();

/// Prints on standard output.
pub fn print(text: &str) {
    write(Stream::Out, text.as_bytes());
}

/// Whether a reader has closed its end.
static CLOSED: AtomicBool = AtomicBool::new(false);

/// Whether standard output and standard error are the same file, so that their order matters.
pub fn is_one() -> bool {
    let same = |one: Stat, other: Stat| (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino);
    fstat(stdout()).is_ok_and(|out| fstat(stderr()).is_ok_and(|err| same(out, err)))
}

/// Whether nobody can read more output: a reader has closed its end, or output was lost.
pub fn is_closed() -> bool {
    CLOSED.load(Ordering::Relaxed) || LOST.get().is_some()
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
        if error.kind() == ErrorKind::BrokenPipe {
            CLOSED.store(true, Ordering::Relaxed);
        } else {
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
