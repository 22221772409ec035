//! Operations on a device and their outcomes. Models and kernels share them.

use serde::{Deserialize, Serialize};

macro_rules! names {
    ($($(#[doc = $doc:literal])+ $name:ident;)+) => {$(
        $(#[doc = $doc])+
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
        )]
        #[serde(transparent)]
        pub struct $name(pub u32);
    )+};
}

names! {
    /// A thread. A process has the name of its first thread.
    T;
    /// A descriptor. A forked child inherits the names of its parent's descriptors.
    D;
    /// A mapping. Forked children inherit names as for descriptors.
    M;
}

/// How a device is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// Read and write.
    ReadWrite,
    /// Read-only.
    ReadOnly,
    /// Write-only.
    WriteOnly,
}

/// A system call other than ioctl and mmap. Its result is the same in every state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Call {
    /// `read`.
    Read,
    /// `write`.
    Write,
    /// `pread`.
    PositionedRead,
    /// `pwrite`.
    PositionedWrite,
    /// `lseek`.
    Seek,
    /// `epoll_ctl` on Linux.
    Poll,
    /// `fstat`, on NetBSD.
    Stat,
    /// `fcntl` with `O_NONBLOCK`, on NetBSD.
    Nonblocking,
    /// `fsync`, on NetBSD.
    Sync,
    /// `ftruncate`, on NetBSD.
    Truncate,
}

/// A kind of remote handle. The numbers differ between runs, so handles that one run leaves
/// registered do not affect the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Handle {
    /// The number 0.
    Zero,
    /// A valid common handle.
    Common(u16),
    /// A valid USB handle of a bus that does not exist.
    Usb(u16),
    /// The USB handle of the bus whose softirqs are remote sections.
    Bus,
    /// A USB handle with a reserved bit set.
    UsbReserved,
    /// A common handle with a reserved bit set.
    CommonReserved,
    /// A handle of an unknown subsystem.
    NoSubsystem,
}

/// Work of the kernel for a thread, in remote sections.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Work {
    /// By a kernel thread: the worker of a vhost device.
    Worker,
    /// By a softirq in the middle of a system call: the completion of a USB request.
    SoftInterrupt,
}

/// The readable part of an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Memory {
    /// All of it.
    Whole,
    /// All but the last word.
    WithoutEnd,
    /// Nothing.
    Nowhere,
}

/// The argument of `KCOV_REMOTE_ENABLE`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Remote {
    /// The mode.
    pub mode: u32,
    /// The area size in words, never 0.
    pub area: u32,
    /// The common handle.
    pub common: Handle,
    /// The array of handles.
    pub handles: Vec<Handle>,
    /// The number of further valid handles in the array.
    pub fill: u32,
    /// The readable part.
    pub memory: Memory,
}

/// An ioctl.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Request {
    /// `KCOV_INIT_TRACE` or `KCOV_IOC_SETBUFSIZE`, in words.
    Size(u64),
    /// `KCOV_ENABLE` or `KCOV_IOC_ENABLE`, with the mode.
    Enable(u64),
    /// `KCOV_DISABLE` or `KCOV_IOC_DISABLE`, with the argument on Linux.
    Disable(u64),
    /// `KCOV_REMOTE_ENABLE`.
    RemoteEnable(Remote),
    /// `KCOV_IOC_REMOTE_ATTACH`: subsystem and id.
    Attach(u64, u64),
    /// `KCOV_IOC_REMOTE_DETACH`.
    Detach,
    /// An unknown ioctl.
    Unknown,
    /// `KCOV_INIT_TRACE` for a kernel with 32-bit words.
    SizeOfOtherWidth,
    /// `KCOV_IOC_SETBUFSIZE` with an unreadable argument.
    SizeUnreadable,
    /// `KCOV_IOC_ENABLE` with an unreadable argument.
    EnableUnreadable,
    /// `KCOV_IOC_REMOTE_ATTACH` with an unreadable argument.
    AttachUnreadable,
}

/// The arguments of mmap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// The length in bytes.
    pub bytes: u64,
    /// The offset in bytes.
    pub offset: i64,
    /// Whether it is writable.
    pub writable: bool,
    /// Whether it is executable.
    pub executable: bool,
    /// Whether it is private.
    pub private: bool,
}

/// An invalid mremap, on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Remap {
    /// Grows the mapping by a page.
    Grow,
    /// Moves the mapping and keeps the old range mapped.
    LeaveOld,
}

/// An operation by `thread`, with its `descriptor` or mapping `map`. `new` names the result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields of all variants are named alike, and explained above")]
pub enum Operation {
    /// Opens the device.
    Open { thread: T, descriptor: D, access: Access },
    /// Duplicates a descriptor.
    Duplicate { thread: T, descriptor: D, new: D },
    /// Sends a descriptor over a socket to a thread of the same or another process.
    Pass { thread: T, descriptor: D, to: T, new: D },
    /// Closes a descriptor.
    Close { thread: T, descriptor: D },
    /// Issues an ioctl.
    Ask { thread: T, descriptor: D, request: Request },
    /// Issues another system call on a descriptor.
    Misuse { thread: T, descriptor: D, call: Call },
    /// Maps a buffer.
    Map { thread: T, descriptor: D, map: M, geometry: Geometry },
    /// Unmaps a buffer.
    Unmap { thread: T, map: M },
    /// Tries to remap a buffer.
    Remap { thread: T, map: M, how: Remap },
    /// Stores a count, makes a system call and reads the count.
    Trace { thread: T, map: M, count: u64 },
    /// Stores a count, lets the kernel work in remote sections and reads the count.
    Background { thread: T, map: M, work: Work, count: u64 },
    /// Stores a word at the end of the mapping's first page.
    Store { thread: T, map: M, word: u64 },
    /// Loads that word.
    Load { thread: T, map: M },
    /// Starts a thread.
    StartThread { thread: T, new: T },
    /// Ends this thread, which is not the first of its process, and joins it in another thread.
    EndThread { thread: T },
    /// Forks. `new` is the child's only thread.
    Fork { thread: T, new: T },
    /// Executes a program, with or without the descriptors.
    Execute { thread: T, keep: bool },
    /// Exits the process and waits for it.
    Exit { thread: T },
    /// Kills the process and waits for it.
    Kill { thread: T },
}

/// The outcome of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Success.
    Done,
    /// Failure with this error. A name, because the numbers differ between systems.
    Refused(&'static str),
    /// The count does not change.
    Unchanged,
    /// The count grows to at most this.
    Grown(u64),
    /// The observed counts before and after.
    Counted(u64, u64),
    /// The loaded word.
    Word(u64),
    /// Success, without a prediction of the effect.
    Anything,
    /// A change that the operation does not imply.
    Changed(String),
    /// No answer, or an invalid one.
    Senseless(String),
}

impl Outcome {
    /// Whether the model's outcome allows the observed one.
    #[must_use]
    pub fn allows(&self, seen: &Outcome) -> bool {
        match (self, seen) {
            (Outcome::Unchanged, Outcome::Counted(before, after)) => before == after,
            (Outcome::Grown(most), Outcome::Counted(before, after)) => {
                before < after && after <= most
            }
            (
                Outcome::Anything,
                Outcome::Refused(_) | Outcome::Changed(_) | Outcome::Senseless(_),
            ) => false,
            (Outcome::Anything, _) => true,
            _ => self == seen,
        }
    }
}
