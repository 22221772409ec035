//! Collecting: a debugger that has each thread enable kcov in itself.
//!
//! The kernel traces threads and nothing is inherited. The first thread enables before it starts
//! the command, and stays traced over exec(2). Of each thread and process that is made afterwards
//! the debugger hears before it runs; it has it fetch a descriptor of a device that is open and
//! mapped here (pidfd_getfd(2)), enable that and close it again. The command needs nothing for it
//! and finds nothing of it: no library, no descriptor, no memory.

mod inject;
mod limit;
mod tracer;

use crate::cli::Error;
use crate::coverage::Coverage;
use crate::modules::Modules;
use kcov_signal::KernelText;
use std::ffi::OsString;
use std::fs;

/// Words of a thread's buffer: what `ls` goes through takes a fifth.
const WORDS: u64 = 512 << 10;

/// How a command came to its end.
#[derive(Clone, Copy, Debug)]
pub enum Ended {
    /// With this status, as a shell has it.
    ByItself(u8),
    /// By us, after so many seconds.
    AtLimit(u32),
}

/// Runs a command to its end and to that of all its children, or to the time limit.
pub fn run(
    command: &[OsString],
    words: Option<u64>,
    limit: Option<u32>,
) -> Result<(Coverage, Ended), Error> {
    let (threads, ended) = tracer::run(command, words.unwrap_or(WORDS), limit)?;
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease")
        .map_err(Error::of("/proc/sys/kernel/osrelease"))?;
    // A kernel without modules has no such file.
    let modules = fs::read_to_string("/proc/modules").unwrap_or_default();
    let coverage = Coverage {
        kernel: kernel.trim_end().to_owned(),
        // It is hidden from whoever may not know it.
        slide: KernelText::read().ok().map(|text| text.kaslr_offset()),
        modules: Modules::parse(&modules),
        threads,
    };
    Ok((coverage, ended))
}
