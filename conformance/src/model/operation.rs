//! What is done to a device, and what comes of it: the words that model and kernel share.

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
    /// A thread. A process goes by the name of its first one.
    T;
    /// A descriptor. A forked child has its parent's descriptors under their names.
    D;
    /// A mapping, named like a descriptor.
    M;
}

/// How a device is opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Access {
    /// For reading and writing.
    ReadWrite,
    /// For reading.
    ReadOnly,
    /// For writing.
    WriteOnly,
}

/// A request that is no request of the device: the same for every state.
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

/// A remote handle: what kind of number it is. Numbers differ from run to run, so that what one
/// run leaves registered does not concern the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Handle {
    /// The number 0.
    Zero,
    /// A good common handle.
    Common(u16),
    /// A good handle of the USB subsystem, of no bus that exists.
    Usb(u16),
    /// A handle of the USB subsystem with a bit set between subsystem and instance.
    UsbReserved,
    /// A common handle with a bit set between subsystem and instance.
    CommonReserved,
    /// A handle of a subsystem that does not exist.
    NoSubsystem,
}

/// Which part of an argument can be read.
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
    /// Words of the buffer of each section, never 0.
    pub area: u32,
    /// The common handle.
    pub common: Handle,
    /// The array of handles.
    pub handles: Vec<Handle>,
    /// So many good ones more in the array.
    pub fill: u32,
    /// What of it can be read.
    pub memory: Memory,
}

/// A request of the device.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Request {
    /// `KCOV_INIT_TRACE` or `KCOV_IOC_SETBUFSIZE`, in words.
    Size(u64),
    /// `KCOV_ENABLE` or `KCOV_IOC_ENABLE`, with that mode.
    Enable(u64),
    /// `KCOV_DISABLE` or `KCOV_IOC_DISABLE`, on Linux with that argument.
    Disable(u64),
    /// `KCOV_REMOTE_ENABLE`.
    RemoteEnable(Remote),
    /// `KCOV_IOC_REMOTE_ATTACH`: subsystem and id.
    Attach(u64, u64),
    /// `KCOV_IOC_REMOTE_DETACH`.
    Detach,
    /// A request that no driver has.
    Unknown,
    /// `KCOV_INIT_TRACE` for a kernel with words of 32 bits.
    SizeOfOtherWidth,
    /// `KCOV_IOC_SETBUFSIZE` whose argument cannot be read.
    SizeUnreadable,
    /// `KCOV_IOC_ENABLE` whose argument cannot be read.
    EnableUnreadable,
    /// `KCOV_IOC_REMOTE_ATTACH` whose argument cannot be read.
    AttachUnreadable,
}

/// What is to be mapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Geometry {
    /// Bytes.
    pub bytes: u64,
    /// The offset in bytes.
    pub offset: i64,
    /// Whether for writing too.
    pub writable: bool,
    /// Whether for executing too.
    pub executable: bool,
    /// Whether it is a private mapping.
    pub private: bool,
}

/// What is asked of a mapping, on Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Remap {
    /// To grow by a page.
    Grow,
    /// To be moved, with the old range left mapped.
    LeaveOld,
}

/// Something that `thread` does: with its `descriptor`, or its mapping `map`, or making what has
/// then the name `new`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[expect(missing_docs, reason = "the fields of all variants are named alike, and explained above")]
pub enum Operation {
    /// Opens the device, under a new name.
    Open { thread: T, descriptor: D, access: Access },
    /// Duplicates a descriptor.
    Duplicate { thread: T, descriptor: D, new: D },
    /// Sends a descriptor through a socket to a thread, of the same process or another.
    Pass { thread: T, descriptor: D, to: T, new: D },
    /// Closes a descriptor.
    Close { thread: T, descriptor: D },
    /// Issues a request.
    Ask { thread: T, descriptor: D, request: Request },
    /// Uses the descriptor for what it is not made for.
    Misuse { thread: T, descriptor: D, call: Call },
    /// Maps.
    Map { thread: T, descriptor: D, map: M, geometry: Geometry },
    /// Unmaps.
    Unmap { thread: T, map: M },
    /// Asks for another shape of a mapping.
    Remap { thread: T, map: M, how: Remap },
    /// Stores a count, makes a system call, and looks at the count.
    Trace { thread: T, map: M, count: u64 },
    /// Has a kernel thread work that it starts on behalf of this thread, and looks whether the
    /// count is more than 0. Only on Linux.
    Background { thread: T, map: M },
    /// Stores a word at the end of the mapping's first page.
    Store { thread: T, map: M, word: u64 },
    /// Loads it.
    Load { thread: T, map: M },
    /// Starts a thread.
    StartThread { thread: T, new: T },
    /// Ends this thread, which is not the process' first, and waits for that in another one.
    EndThread { thread: T },
    /// Forks; the child's one thread has a new name.
    Fork { thread: T, new: T },
    /// Executes a program anew, with the descriptors or without them.
    Execute { thread: T, keep: bool },
    /// Ends the process, and waits for its end.
    Exit { thread: T },
    /// Kills the process of this thread, and waits for its end.
    Kill { thread: T },
}

/// What comes of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was done.
    Done,
    /// It was refused with the error of that name. Names, because the numbers are each system's.
    Refused(&'static str),
    /// The count does not change.
    Unchanged,
    /// The count grows, to no more than this.
    Grown(u64),
    /// The count before and after, as it is seen.
    Counted(u64, u64),
    /// The word that was loaded.
    Word(u64),
    /// Not refused; nothing is said of what is seen.
    Anything,
    /// Something was changed that the operation does not mention.
    Changed(String),
    /// No answer, or one that makes no sense.
    Senseless(String),
}

impl Outcome {
    /// Whether the model's word allows what was seen.
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
