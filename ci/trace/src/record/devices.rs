//! The devices of kcov: one for each thread, which enables it itself, and one for the kernel's
//! workers. No other file opens or reads a device.

use crate::coverage::Thread;
use crate::error::Error;
use kcov::remote::linux::{Remote, RemoteSession};
use kcov::{BufferSize, ChildBuffer, Completeness, Device, mode::TracePc};
use std::fmt::Display;
use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::time::Duration;

/// The device of a thread of the command.
pub struct Buffer(ChildBuffer<TracePc>);

impl Buffer {
    /// Opens a device. The error says what to do.
    pub fn open(words: u64) -> Result<Buffer, String> {
        Ok(Buffer(open(words)?.into_child_buffer(TracePc).map_err(text)?))
    }

    /// The open file of the device.
    pub fn fd(&self) -> RawFd {
        self.0.device().as_fd().as_raw_fd()
    }

    /// The number of records in it.
    pub fn records(&self) -> u64 {
        self.0.trace().len() as u64
    }

    /// Forgets the records, or says why it cannot.
    pub fn forget(&mut self) -> Result<(), String> {
        self.0.reset().map_err(text)
    }

    /// Moves the records of a thread that does not run. Returns whether the buffer is empty now.
    pub fn empty(&mut self, into: &mut Thread) -> bool {
        let trace = self.0.trace();
        into.truncated |= trace.completeness() != Completeness::Complete;
        into.count(trace.iter());
        self.forget().is_ok()
    }
}

/// The device for the kernel's workers: objects that the command sets up inherit this thread's
/// handle, because its children do.
pub struct Background {
    session: RemoteSession<TracePc>,
    words: u64,
    found: Thread,
}

impl Background {
    /// Starts to collect for the threads that this thread makes from now on.
    pub fn start(words: u64) -> Result<Background, String> {
        let remote = Remote::new().any_common();
        let session = open(words)?.into_remote_session(TracePc, &remote).map_err(text)?;
        let found = Thread { name: "background".into(), ..Thread::default() };
        Ok(Background { session, words, found })
    }

    /// Empties a buffer that is half full. Fails if collecting has ended.
    pub fn empty_full(&mut self) -> Result<(), String> {
        if self.session.trace().len() as u64 <= self.words / 2 {
            return Ok(());
        }
        self.take();
        // The kernel drops the records of the workers that are running.
        self.found.truncated = true;
        self.session.restart().map_err(text)
    }

    /// Ends collecting, when no worker has added records for a moment.
    pub fn finish(mut self) -> Option<Thread> {
        self.session.settle(Duration::from_millis(5), Duration::from_millis(500));
        self.take();
        Some(self.found).filter(|found| found.records > 0)
    }

    fn take(&mut self) {
        let trace = self.session.trace();
        self.found.truncated |= trace.completeness() != Completeness::Complete;
        self.found.count(trace.iter());
    }
}

/// Keeps the buffers mapped here out of children. The command's trace would begin with their
/// unmapping by exec(2).
pub fn keep_from_children() -> Result<(), Error> {
    const MAPS: &str = "/proc/self/maps";
    let maps = fs::read_to_string(MAPS).map_err(Error::of(MAPS))?;
    for line in maps.lines().filter(|line| line.ends_with("/kcov")) {
        let range = line.split(' ').next().and_then(|range| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        let range = range.and_then(|(start, end)| number(start).zip(number(end)));
        if let Some((start, end)) = range {
            // SAFETY: only children lose the mapping, and none of them uses it.
            unsafe { libc::madvise(start as *mut _, end - start, libc::MADV_DONTFORK) };
        }
    }
    Ok(())
}

/// Opens a device, unless the machine would run out of memory: the kernel would end a program.
fn open(words: u64) -> Result<Device, String> {
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let field = |key| {
        let line = memory.lines().find_map(|line| line.strip_prefix(key))?;
        line.trim().trim_end_matches(" kB").parse::<u64>().ok()
    };
    let needed = words.saturating_mul(8) >> 10;
    if let (Some(total), Some(free)) = (field("MemTotal:"), field("MemAvailable:")) {
        if free < needed.saturating_add(total / 8) {
            return Err(format!(
                "a buffer of {needed} KiB does not fit into the free memory; set smaller ones \
                 with --words N, or give a guest more with --memory MIB"
            ));
        }
    }
    Device::builder().size(BufferSize::words(words)).open().map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}
