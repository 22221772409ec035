//! Models of the drivers: plain state machines that give the result of each operation. They check
//! for errors in the driver's order.
//!
//! [`World`] is what both systems have around a driver: processes, threads, descriptors, open
//! files and mappings. [`linux::Linux`] and [`netbsd::NetBsd`] are the drivers. Nothing here asks a
//! kernel, so both compile on both systems. `tests` compares them with the registry's errors, and
//! [`lockstep`](crate::lockstep) with running kernels.

mod frame;
pub mod linux;
mod names;
pub mod netbsd;
mod operation;
pub mod states;
mod world;

pub use frame::Touch;
pub use names::Kind;
pub use operation::{
    Access, Call, D, Geometry, Handle, M, Memory, Operation, Outcome, Remap, Remote, Request, T,
    Work,
};
pub use world::{MOST_THREADS, Mapping, World};

use std::sync::atomic::{AtomicU64, Ordering};

/// The page size of the modelled machine, in bytes.
static PAGE: AtomicU64 = AtomicU64::new(4096);

/// The page size of the modelled machine, in bytes.
#[must_use]
pub fn page() -> u64 {
    PAGE.load(Ordering::Relaxed)
}

/// Models machines with another page size from now on.
pub fn set_page(bytes: u64) {
    PAGE.store(bytes, Ordering::Relaxed);
}

/// The size of a word, in bytes.
pub const WORD: u64 = 8;

/// A count beyond the end of any buffer, so nothing is recorded in any mode, but small enough that
/// no kernel's arithmetic overflows.
pub const FULL: u64 = 1 << 20;

/// One open of the device, and its buffer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance(pub u32);

/// A mode of tracing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Nothing; NetBSD only.
    None,
    /// Program counters.
    Pc,
    /// Comparisons.
    Cmp,
}

impl Mode {
    /// The capacity in records of a buffer of this many words.
    #[must_use]
    pub fn capacity(self, words: u64) -> u64 {
        match self {
            Mode::None => 0,
            Mode::Pc => words.saturating_sub(1),
            Mode::Cmp => words.saturating_sub(1) / 4,
        }
    }
}

/// Who records what into a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recording {
    /// The traced thread. None if remote work is collected or the thread is ending.
    pub thread: Option<T>,
    /// The mode.
    pub mode: Mode,
    /// The buffer's size in words.
    pub words: u64,
}

/// How a thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Alone; its process continues.
    Thread,
    /// Because another thread of the process executes a program.
    Execution,
    /// With the process.
    Process,
}

/// A driver, with its instances and their buffers.
pub trait Driver: Clone + std::fmt::Debug {
    /// Another state in which an ioctl on this instance may find the driver, because the kernel
    /// defers some bookkeeping.
    fn late(&self, instance: Instance) -> Option<Self>;

    /// Opens an instance.
    fn open(&mut self) -> Instance;

    /// Closes the last descriptor of an instance.
    fn close(&mut self, instance: Instance);

    /// Issues an ioctl.
    fn ask(&mut self, thread: T, instance: Instance, request: &Request) -> Outcome;

    /// Issues a system call other than ioctl and mmap on a descriptor.
    fn misuse(&self, access: Access, call: Call) -> Outcome;

    /// Maps a buffer. Returns the instance that owns it, or the name of the error.
    fn map(
        &self,
        instance: Instance,
        access: Access,
        geometry: &Geometry,
    ) -> Result<Instance, &'static str>;

    /// Whether the kernel survives this mmap.
    fn outlives(&self, geometry: &Geometry) -> bool;

    /// Remaps; this always fails.
    fn remap(&self, how: Remap) -> Outcome;

    /// Starts a thread, in the same process or a forked one.
    fn start(&mut self, parent: T, new: T);

    /// Ends a thread.
    fn end(&mut self, thread: T, how: End);

    /// The size in words of the buffer that mappings of this instance show.
    fn words(&self, instance: Instance) -> Option<u64>;

    /// The current recording into this buffer.
    fn recording(&self, buffer: Instance) -> Option<Recording>;

    /// The change of this buffer's count when the kernel does this work for the thread.
    fn background(&self, thread: T, work: Work, buffer: Instance, count: u64) -> Outcome;

    /// The result of tracing with this count in the buffer, or none if the count must not be
    /// stored: some drivers then write outside the buffer.
    fn counted(&self, recording: Recording, count: u64) -> Option<Outcome>;

    /// Whether the buffer is as old as the kernel, so its initial contents are unknown.
    fn outlives_devices(&self, buffer: Instance) -> bool;

    /// Ioctls by a thread outside the model, on its own sized device, with their results. They
    /// reveal hidden state of the driver and together leave it unchanged.
    fn shown(&self) -> Vec<(Request, Outcome)>;
}

#[cfg(test)]
mod tests;
