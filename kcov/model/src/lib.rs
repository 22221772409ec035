#![doc = include_str!("../README.md")]

pub mod linux;
pub mod netbsd;
mod operation;
mod world;

pub use operation::{
    Access, Call, D, Errno, Geometry, Handle, M, Memory, Operation, Outcome, Protection, Remap,
    Remote, Request, T, Work,
};
pub use world::{MOST_THREADS, Mapping, Process, Touch, World};

use std::fmt::Debug;

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
    /// The number of words in a record.
    #[must_use]
    pub fn stride(self) -> u64 {
        if self == Mode::Cmp { 4 } else { 1 }
    }

    /// The capacity in records of a buffer of this many words.
    #[must_use]
    pub fn capacity(self, words: u64) -> u64 {
        if self == Mode::None { 0 } else { words.saturating_sub(1) / self.stride() }
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

/// Where a record goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Nowhere: the buffer is full.
    Dropped,
    /// From this index on, after the count is set. Index 0 overwrites the count.
    At {
        /// The index of the first word.
        index: u64,
        /// The new count.
        count: u64,
    },
    /// Outside of the buffer.
    Outside,
}

/// Remote work in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Section {
    /// The buffer that gets the records.
    pub buffer: Instance,
    /// The mode.
    pub mode: Mode,
    /// On Linux, the words of the section's own area, and how often the instance was reset before.
    pub area: Option<(u64, u64)>,
}

/// The origin of remote work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A handle of Linux.
    Handle(Handle),
    /// A source of NetBSD: subsystem and id.
    Source(u64, u64),
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

/// An ioctl or mmap on an instance.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// The instance.
    pub instance: Instance,
    /// How its descriptor was opened.
    pub access: Access,
    /// [`Operation::Ask`] or [`Operation::Map`].
    pub operation: &'a Operation,
}

impl Asked<'_> {
    fn thread(&self) -> T {
        self.operation.thread()
    }

    /// The ioctl's argument, if it is a number.
    fn number(&self) -> u64 {
        match *self.operation {
            Operation::Ask {
                request: Request::Size(number) | Request::Enable(number) | Request::Disable(number),
                ..
            } => number,
            _ => 0,
        }
    }

    fn geometry(&self) -> Geometry {
        match self.operation {
            Operation::Map { geometry, .. } => *geometry,
            other => panic!("no mmap: {other:?}"),
        }
    }
}

/// Why a driver refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Reason {
    /// The error.
    pub errno: Errno,
    /// The condition, in words.
    pub when: &'static str,
}

/// A test of a driver.
#[derive(Debug)]
pub struct Rule<R> {
    /// The error and its condition.
    pub reason: Reason,
    holds: fn(&R, &Asked<'_>) -> bool,
}

impl<R> Rule<R> {
    const fn new(errno: Errno, when: &'static str, holds: fn(&R, &Asked<'_>) -> bool) -> Rule<R> {
        Rule { reason: Reason { errno, when }, holds }
    }
}

/// The requests of a driver, each with its rules in the order of the driver's tests. If several
/// hold, the first one decides.
pub type Order<R> = &'static [(&'static str, &'static [Rule<R>])];

/// A driver, with its instances and their buffers.
pub trait Driver: Debug {
    /// All rules.
    fn order() -> Order<Self>
    where
        Self: Sized;

    /// The page size of the machine, in bytes.
    fn page(&self) -> u64;

    /// Opens an instance.
    fn open(&mut self) -> Instance;

    /// Closes the last descriptor of an instance.
    fn close(&mut self, instance: Instance);

    /// All reasons to refuse this, in the order of the driver's tests.
    fn refusals(&self, asked: &Asked<'_>) -> Vec<&'static Reason>;

    /// Issues an ioctl or mmap.
    fn ask(&mut self, asked: &Asked<'_>) -> Outcome;

    /// The error of a system call other than ioctl and mmap on a descriptor.
    fn misuse(&self, access: Access, call: Call) -> Errno;

    /// Whether the kernel survives this mmap.
    fn outlives(&self, geometry: &Geometry) -> bool;

    /// Remaps; this never succeeds.
    fn remap(&self, how: Remap) -> Outcome;

    /// Gives a mapping of a descriptor more access. None if the driver has no say.
    fn adds_access(&self, access: Access, geometry: &Geometry) -> Option<Errno>;

    /// Starts a thread, in the same process or a forked one.
    fn start(&mut self, parent: T, new: T);

    /// Ends a thread.
    fn end(&mut self, thread: T, how: End);

    /// Completes cleanup that the driver defers, and that an ioctl on this instance may find done or
    /// not. Returns whether there was any.
    fn catch_up(&mut self, instance: Instance) -> bool;

    /// The owner of the buffer that mappings of this instance show.
    fn buffer(&self, instance: Instance) -> Instance;

    /// The size of a buffer in words.
    fn words(&self, buffer: Instance) -> Option<u64>;

    /// Whether the kernel allocated the buffer at boot. Its contents are then unknown at first.
    fn outlives_devices(&self, buffer: Instance) -> bool;

    /// The buffer into which a thread is traced.
    fn traced(&self, thread: T) -> Option<Instance>;

    /// The current recording into this buffer.
    fn recording(&self, buffer: Instance) -> Option<Recording>;

    /// The place of a record that finds this count in a buffer of this many words.
    fn place(&self, mode: Mode, words: u64, count: u64) -> Place;

    /// The result of tracing with this count in the buffer. `None` if the driver would write outside
    /// of the buffer, so tests must not store the count.
    fn counted(&self, recording: Recording, count: u64) -> Option<Outcome> {
        let Recording { mode, words, .. } = recording;
        match self.place(mode, words, count) {
            Place::Outside => None,
            Place::Dropped => Some(Outcome::Unchanged),
            Place::At { index: 0, .. } => Some(Outcome::Anything),
            Place::At { .. } => Some(Outcome::Grown(mode.capacity(words))),
        }
    }

    /// Starts remote work, if it is collected.
    fn begin(&self, origin: Origin) -> Option<Section>;

    /// Whether the records of a section in an area of its own are appended to the buffer at its end.
    fn appends(&self, section: &Section) -> bool;

    /// The change of this buffer's count when the kernel does this work for the thread.
    fn background(&self, thread: T, work: Work, buffer: Instance, count: u64) -> Outcome;

    /// Ioctls by a thread outside the model, on its own sized device, with their results. They
    /// reveal hidden state of the driver and together leave it unchanged.
    fn shown(&self) -> Vec<(Request, Outcome)>;
}

/// The reasons of all rules that hold.
fn held<R>(rules: &'static [Rule<R>], driver: &R, asked: &Asked<'_>) -> Vec<&'static Reason> {
    rules.iter().filter(|rule| (rule.holds)(driver, asked)).map(|rule| &rule.reason).collect()
}

#[cfg(test)]
mod tests {
    use super::linux::Linux;
    use super::netbsd::NetBsd;
    use super::*;

    /// Records that find any count, in a buffer of 64 words. Lockstep stores no count with which a
    /// driver writes outside of the buffer.
    #[test]
    fn a_count_is_a_place() {
        let at = |index, count| Place::At { index, count };
        let trusting = linux::Kernel { bounds_count: false, ..linux::Kernel::LATEST };
        let (linux, trusting) = (Linux::new(linux::Kernel::LATEST), Linux::new(trusting));
        let netbsd = NetBsd::new(netbsd::Kernel::LATEST);
        let [dropped, outside] = [Place::Dropped, Place::Outside];
        for (mode, count, on_linux, on_trusting, on_netbsd) in [
            (Mode::Pc, 0, at(1, 1), at(1, 1), at(1, 1)),
            (Mode::Pc, 62, at(63, 63), at(63, 63), at(63, 63)),
            (Mode::Pc, 63, dropped, dropped, dropped),
            (Mode::Pc, 1 << 63, dropped, dropped, dropped),
            (Mode::Pc, u64::MAX, at(0, 0), at(0, 0), dropped),
            (Mode::Cmp, 14, at(57, 15), at(57, 15), at(57, 15)),
            (Mode::Cmp, 15, dropped, dropped, dropped),
            (Mode::Cmp, 1 << 40, dropped, dropped, dropped),
            (Mode::Cmp, 1 << 62, dropped, outside, outside),
            (Mode::Cmp, u64::MAX, dropped, outside, outside),
        ] {
            let drivers: [(&dyn Driver, _); 3] =
                [(&linux, on_linux), (&trusting, on_trusting), (&netbsd, on_netbsd)];
            for (driver, place) in drivers {
                assert_eq!(driver.place(mode, 64, count), place, "{mode:?} {count:#x}: {driver:?}");
            }
        }
    }

    /// If a section is running when collection ends, the kernel drops its records.
    #[test]
    fn a_section_belongs_to_one_collection() {
        let (thread, descriptor) = (T(0), D(0));
        let mut world = World::new(Linux::new(linux::Kernel::LATEST));
        let enable = Request::RemoteEnable(Remote::new(Handle(1), Vec::new()));
        let ask = |request| Operation::Ask { thread, descriptor, request };
        let open = Operation::Open { thread, descriptor, access: Access::ReadWrite };
        let [size, disable] = [Request::Size(512), Request::Disable(0)].map(ask);
        let mut sections = Vec::new();
        for operation in [open, size, ask(enable.clone()), disable, ask(enable)] {
            let (outcome, next) = world.step(&operation).remove(0);
            assert_eq!(outcome, Outcome::Done, "{operation:?}");
            world = next;
            sections.extend(world.driver.begin(Origin::Handle(Handle(1))));
        }
        let appended: Vec<bool> = sections.iter().map(|it| world.driver.appends(it)).collect();
        assert_eq!(appended, [false, true]);
    }
}
