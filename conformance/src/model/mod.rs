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
};
pub use world::{MOST_THREADS, Mapping, World};

/// The page size of all modelled machines, in bytes.
pub const PAGE: u64 = 4096;
/// The size of a word, in bytes.
pub const WORD: u64 = 8;

/// A count beyond the end of any buffer, so nothing is recorded in any mode, but small enough that no
/// kernel's arithmetic overflows.
pub const FULL: u64 = 1 << 20;

/// One open of the device, and its buffer's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance(pub u32);

/// What a traced thread records.
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
    /// How many records fit in a buffer of that many words.
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
    /// The traced thread; none if work elsewhere is collected, or the thread is ending.
    pub thread: Option<T>,
    /// What a traced thread records.
    pub mode: Mode,
    /// The buffer's size in words.
    pub words: u64,
}

/// How a thread ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// By itself, in a process that goes on.
    Thread,
    /// Because another thread of the process executes a program.
    Execution,
    /// With the process.
    Process,
}

/// A driver: what happens to its instances and their buffers.
pub trait Driver: Clone + std::fmt::Debug {
    /// The other states in which a request on that instance may find the driver, because the
    /// kernel does some bookkeeping in its own time.
    fn late(&self, instance: Instance) -> Option<Self>;

    /// A new instance.
    fn open(&mut self) -> Instance;

    /// The last descriptor of an instance is gone.
    fn close(&mut self, instance: Instance);

    /// A request.
    fn ask(&mut self, thread: T, instance: Instance, request: &Request) -> Outcome;

    /// A call on a descriptor that is no request.
    fn misuse(&self, access: Access, call: Call) -> Outcome;

    /// A mapping; which instance's buffer it shows, or the name of the error.
    fn map(
        &self,
        instance: Instance,
        access: Access,
        geometry: &Geometry,
    ) -> Result<Instance, &'static str>;

    /// Whether the kernel outlives being asked for that mapping.
    fn outlives(&self, geometry: &Geometry) -> bool;

    /// Another shape of a mapping, which is always refused.
    fn remap(&self, how: Remap) -> Outcome;

    /// A thread starts, in the same process or a forked one.
    fn start(&mut self, parent: T, new: T);

    /// A thread has ended.
    fn end(&mut self, thread: T, how: End);

    /// Words of the buffer that a mapping of the instance shows.
    fn words(&self, instance: Instance) -> Option<u64>;

    /// Who records into that buffer.
    fn recording(&self, buffer: Instance) -> Option<Recording>;

    /// What becomes of that buffer's count of 0 when the kernel works on behalf of the thread.
    fn background(&self, thread: T, buffer: Instance) -> Outcome;

    /// What comes of tracing with that count in the buffer, if the count may be stored: some
    /// drivers write outside of the buffer where it is bad enough.
    fn counted(&self, recording: Recording, count: u64) -> Option<Outcome>;

    /// Whether nothing is known of what a buffer contains at first.
    fn unknown_content(&self, buffer: Instance) -> bool;

    /// Requests of a thread outside of the model, on a sized device of its own, and what each comes
    /// to: they show what else the driver keeps, and all together leave it as it was.
    fn shown(&self) -> Vec<(Request, Outcome)>;
}

#[cfg(test)]
mod tests;
