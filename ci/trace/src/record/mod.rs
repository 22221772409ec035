//! Collects coverage with a debugger that makes each thread enable kcov for itself.
//!
//! The kernel traces single threads, and children do not inherit it. The first thread enables kcov
//! before it starts the command, and stays traced across exec(2). The debugger stops every later
//! thread and process before it runs. It makes the thread fetch a file descriptor of a device that
//! is open and mapped here (pidfd_getfd(2)), enable the device and close the descriptor again. The
//! command needs no library for this, and finds no file descriptor and no memory of it.

mod clock;
mod inject;
mod tracer;

use crate::coverage::Coverage;
use crate::error::Error;
use crate::modules::Modules;
use kcov_signal::KernelText;
use std::ffi::OsString;
use std::fs;

/// The words of a thread's buffer. `ls` fills a third of it.
const WORDS: u64 = 512 << 10;

/// How a command ended.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// By itself, with this status as a shell reports it.
    ByItself(u8),
    /// The limit of so many seconds ended it.
    AtLimit(u32),
}

/// Runs a command until it and all its children have ended, or until the time limit.
pub fn run(
    command: &[OsString],
    words: Option<u64>,
    limit: Option<u32>,
) -> Result<(Coverage, Ended), Error> {
    let (threads, ended) = tracer::run(command, words.unwrap_or(WORDS), limit)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_err(Error::of("/proc/sys/kernel/osrelease"))?;
    // A kernel without modules lacks this file.
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let coverage = Coverage {
        kernel: kernel.trim_end().to_owned(),
        // The kernel hides it from unprivileged processes.
        slide: KernelText::read().ok().map(|text| text.kaslr_offset()),
        modules: Modules::parse(&modules),
        threads,
    };
    Ok((coverage, ended))
}
