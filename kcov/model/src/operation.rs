//! The vocabulary: operations around a device, and their outcomes.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A handle of remote coverage on Linux: `KCOV_SUBSYSTEM_COMMON` or `KCOV_SUBSYSTEM_USB`, and an
/// instance.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// The bytes have meanings, so in hexadecimal.
impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// A thread. A process has the name of its first thread.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct T(pub u32);

/// A descriptor. A forked child inherits the names of its parent's descriptors.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct D(pub u32);

/// A mapping. Forked children inherit names as for descriptors.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct M(pub u32);

/// An error, by name, because the numbers differ between systems.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Errno {
    EACCES,
    EBADF,
    EBUSY,
    EEXIST,
    EFAULT,
    EINVAL,
    ENOBUFS,
    ENOENT,
    ENOMEM,
    /// Number 524, the kernel's own.
    ENOTSUPP,
    ENOTTY,
    EOPNOTSUPP,
    EOVERFLOW,
    EPERM,
    ESPIPE,
}

impl Errno {
    /// The number in a table of `kcov_sys::errno`.
    ///
    /// # Panics
    ///
    /// If this system has no such error.
    #[must_use]
    pub fn number(self, table: &[(&str, i32)]) -> i32 {
        let name = format!("{self:?}");
        table.iter().find(|row| row.0 == name).expect("an error of this system").1
    }
}

/// How a device is opened.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Access {
    ReadWrite,
    ReadOnly,
    WriteOnly,
}

/// A system call other than ioctl and mmap. Its result is the same in every state.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// Work of the kernel for a thread, in remote sections.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Work {
    /// By a kernel thread: the worker of a vhost device on Linux, the exploration of a port on
    /// NetBSD.
    Worker,
    /// By a softirq in the middle of a system call: the completion of a USB request.
    SoftInterrupt,
}

/// The readable part of an argument.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// All of it.
    Whole,
    /// All but the last word.
    WithoutEnd,
    /// Nothing.
    Nowhere,
}

/// The argument of `KCOV_REMOTE_ENABLE`.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    /// The mode.
    pub mode: u32,
    /// The area size in words, never 0.
    pub area: u32,
    /// The common handle, or 0.
    pub common: Handle,
    /// The array of handles.
    pub handles: Vec<Handle>,
    /// The number of further valid handles in the array: those of [`Remote::filling`].
    pub fill: u32,
    /// The readable part.
    pub memory: Memory,
}

impl Remote {
    /// A plain argument with these handles, for program counters.
    #[must_use]
    pub fn new(common: Handle, handles: Vec<Handle>) -> Remote {
        Remote { mode: 0, area: 512, common, handles, fill: 0, memory: Memory::Whole }
    }

    /// The handle at this place of the filling.
    #[must_use]
    pub fn filling(index: u32) -> Handle {
        Handle(kcov_sys::linux::KCOV_SUBSYSTEM_USB | u64::from(512 + index))
    }

    /// The whole array.
    pub fn array(&self) -> impl ExactSizeIterator<Item = Handle> + '_ {
        let given = self.handles.len();
        (0..given + self.fill as usize).map(move |index| match self.handles.get(index) {
            Some(handle) => *handle,
            None => Remote::filling((index - given) as u32),
        })
    }
}

/// An ioctl.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

impl Geometry {
    /// A shared mapping from the start of the buffer.
    #[must_use]
    pub fn of(bytes: u64, writable: bool) -> Geometry {
        Geometry { bytes, offset: 0, writable, executable: false, private: false }
    }
}

/// An invalid mremap, on Linux.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Remap {
    /// Grows the mapping by a page.
    Grow,
    /// Moves the mapping and keeps the old range mapped.
    LeaveOld,
}

/// The access that a mapping allows.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Protection {
    None,
    Read,
    ReadWrite,
}

/// An operation by `thread`, with its `descriptor` or mapping `map`. `new` names the result.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the fields of all variants are named alike, and explained above")]
pub enum Operation {
    /// Opens the device.
    Open { thread: T, descriptor: D, access: Access },
    /// Duplicates a descriptor.
    Duplicate { thread: T, descriptor: D, new: D },
    /// Sends a descriptor over a socket to another thread, of this process or of another.
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
    /// Changes the access that a mapping allows.
    Protect { thread: T, map: M, protection: Protection },
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

impl Operation {
    /// The acting thread.
    #[must_use]
    pub fn thread(&self) -> T {
        macro_rules! of {
            ($($kind:ident)*) => { match self { $(Operation::$kind { thread, .. })|* => *thread } };
        }
        of!(Open Duplicate Pass Close Ask Misuse Map Unmap Remap Protect Trace Background Store Load
            StartThread EndThread Fork Execute Exit Kill)
    }
}

/// The outcome of an operation.
#[cfg_attr(feature = "serde", derive(Deserialize, Serialize))]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// Success.
    Done,
    /// Failure with this error.
    Refused(Errno),
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
    /// What no operation implies, in words. Never a prediction.
    Other(String),
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
            (Outcome::Anything, seen) => !matches!(seen, Outcome::Refused(_) | Outcome::Other(_)),
            _ => self == seen,
        }
    }
}
