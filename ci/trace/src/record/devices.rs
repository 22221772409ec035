//! The devices of kcov: one for each thread, which enables it itself, and one for the kernel's
//! workers. No other file opens or reads a device.

use crate::coverage::Thread;
use kcov::mode::TracePc;
use kcov::remote::RemoteSession;
use kcov::remote::linux::Remote;
use kcov::{BufferSize, ChildBuffer, Completeness, Device};
use std::fmt::Display;
use std::fs;
use std::os::fd::{AsFd as _, AsRawFd as _, RawFd};
use std::time::{Duration, Instant};

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

    /// The number of records in it; none if the command has truncated it.
    pub fn records(&self) -> u64 {
        self.0.trace().map_or(0, |trace| trace.len() as u64)
    }

    /// Forgets the records.
    pub fn forget(&mut self) {
        self.0.reset();
    }

    /// Moves the records of a thread that does not run. Returns whether the buffer is empty now; it
    /// is lost if the command has truncated it.
    pub fn empty(&mut self, into: &mut Thread) -> bool {
        let Ok(trace) = self.0.trace() else { return false };
        into.truncated |= trace.completeness() != Completeness::Complete;
        into.count(trace.iter());
        self.forget();
        true
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
        let until = Instant::now() + Duration::from_millis(500);
        self.session.settle(Duration::from_millis(5), until);
        self.take();
        Some(self.found).filter(|found| found.records > 0)
    }

    fn take(&mut self) {
        let trace = self.session.trace();
        self.found.truncated |= trace.completeness() != Completeness::Complete;
        self.found.count(trace.iter());
    }
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
    // SAFETY: the tracer's children only execute the command, which maps no buffer.
    let builder = unsafe { Device::builder().not_inherited() };
    builder.size(BufferSize::words(words)).open().map_err(text)
}

fn text(error: impl Display) -> String {
    error.to_string()
}
