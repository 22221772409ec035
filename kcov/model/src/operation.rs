//! The vocabulary: operations around a device, and their outcomes.

use std::str::FromStr;

/// A value that its debug form spells out, so it can be read back.
pub(crate) trait Spelled: Sized {
    fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Self>;

    /// Visits the names of threads, descriptors and mappings.
    fn visit(&mut self, _: &mut dyn FnMut(Kind, &mut u32)) {}
}

/// Skips this word.
fn skip<'t>(words: &mut impl Iterator<Item = &'t str>, word: &str) -> Option<()> {
    (words.next()? == word).then_some(())
}

macro_rules! spelled {
    ($(#[$doc:meta])* pub enum $name:ident { $($(#[$of:meta])* $variant:ident
        $(($($item:ident: $type:ty),+))? $({ $($field:ident: $of_field:ty),+ })?,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum $name {
            $($(#[$of])* $variant $(($($type),+))? $({ $($field: $of_field),+ })?,)+
        }

        impl Spelled for $name {
            fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
                let word = words.next()?;
                $(if word == stringify!($variant) {
                    return Some($name::$variant $(($(<$type>::read(words)?),+))? $({ $($field: {
                        skip(words, stringify!($field))?;
                        <$of_field>::read(words)?
                    }),+ })?);
                })+
                None
            }

            fn visit(&mut self, see: &mut dyn FnMut(Kind, &mut u32)) {
                let _ = &see;
                match self {
                    $($name::$variant $(($($item),+))? $({ $($field),+ })? => {
                        $($($item.visit(see);)+)?
                        $($($field.visit(see);)+)?
                    })+
                }
            }
        }
    };
    ($(#[$doc:meta])* pub struct $name:ident { $($(#[$of:meta])* $field:ident: $type:ty,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub struct $name { $($(#[$of])* pub $field: $type,)+ }

        impl Spelled for $name {
            fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
                skip(words, stringify!($name))?;
                Some($name { $($field: {
                    skip(words, stringify!($field))?;
                    <$type>::read(words)?
                }),+ })
            }
        }
    };
    ($(#[$doc:meta])* name $name:ident of $kind:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl Spelled for $name {
            fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
                skip(words, stringify!($name))?;
                u32::read(words).map($name)
            }

            fn visit(&mut self, see: &mut dyn FnMut(Kind, &mut u32)) {
                see(Kind::$kind, &mut self.0);
            }
        }
    };
    (parsed $($type:ty)+) => {$(
        impl Spelled for $type {
            fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Self> {
                words.next()?.parse().ok()
            }
        }
    )+};
    (from_str $($type:ty)+) => {$(
        /// Reads the debug form.
        impl FromStr for $type {
            type Err = String;

            fn from_str(text: &str) -> Result<Self, String> {
                let text = text.replace('[', " [ ").replace(']', " ] ");
                let words = text.split(|c: char| " ,:{}()".contains(c));
                let mut words = words.filter(|word| !word.is_empty());
                let read = Self::read(&mut words).filter(|_| words.next().is_none());
                read.ok_or_else(|| format!("cannot read {text:?}"))
            }
        }
    )+};
}

spelled! { parsed bool u32 u64 i64 }
spelled! { from_str Operation Outcome Errno }

impl Spelled for String {
    /// It is prose.
    fn read<'t>(_: &mut impl Iterator<Item = &'t str>) -> Option<String> {
        None
    }
}

/// A handle of remote coverage on Linux: `KCOV_SUBSYSTEM_COMMON` or `KCOV_SUBSYSTEM_USB`, and an
/// instance.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle(pub u64);

/// The bytes have meanings, so in hexadecimal.
impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

impl Handle {
    fn parse(word: &str) -> Option<Handle> {
        u64::from_str_radix(word.strip_prefix("0x")?, 16).ok().map(Handle)
    }
}

impl Spelled for Handle {
    fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Handle> {
        Handle::parse(words.next()?)
    }
}

impl Spelled for Vec<Handle> {
    fn read<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<Vec<Handle>> {
        skip(words, "[")?;
        words.take_while(|word| *word != "]").map(Handle::parse).collect()
    }
}

spelled! {
    /// A thread. A process has the name of its first thread.
    name T of Thread
}
spelled! {
    /// A descriptor. A forked child inherits the names of its parent's descriptors.
    name D of Descriptor
}
spelled! {
    /// A mapping. Forked children inherit names as for descriptors.
    name M of Mapping
}

/// The kind of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Kind {
    Thread,
    Descriptor,
    Mapping,
}

spelled! {
    /// An error, by name, because the numbers differ between systems.
    #[derive(Copy, PartialOrd, Ord)]
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

spelled! {
    /// How a device is opened.
    #[derive(Copy)]
    #[expect(missing_docs, reason = "the names say it")]
    pub enum Access {
        ReadWrite,
        ReadOnly,
        WriteOnly,
    }
}

spelled! {
    /// A system call other than ioctl and mmap. Its result is the same in every state.
    #[derive(Copy)]
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
}

spelled! {
    /// Work of the kernel for a thread, in remote sections.
    #[derive(Copy)]
    pub enum Work {
        /// By a kernel thread: the worker of a vhost device on Linux, the exploration of a port on
        /// NetBSD.
        Worker,
        /// By a softirq in the middle of a system call: the completion of a USB request.
        SoftInterrupt,
    }
}

spelled! {
    /// The readable part of an argument.
    #[derive(Copy)]
    pub enum Memory {
        /// All of it.
        Whole,
        /// All but the last word.
        WithoutEnd,
        /// Nothing.
        Nowhere,
    }
}

spelled! {
    /// The argument of `KCOV_REMOTE_ENABLE`.
    pub struct Remote {
        /// The mode.
        mode: u32,
        /// The area size in words, never 0.
        area: u32,
        /// The common handle, or 0.
        common: Handle,
        /// The array of handles.
        handles: Vec<Handle>,
        /// The number of further valid handles in the array: those of [`Remote::filling`].
        fill: u32,
        /// The readable part.
        memory: Memory,
    }
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

spelled! {
    /// An ioctl.
    pub enum Request {
        /// `KCOV_INIT_TRACE` or `KCOV_IOC_SETBUFSIZE`, in words.
        Size(words: u64),
        /// `KCOV_ENABLE` or `KCOV_IOC_ENABLE`, with the mode.
        Enable(mode: u64),
        /// `KCOV_DISABLE` or `KCOV_IOC_DISABLE`, with the argument on Linux.
        Disable(argument: u64),
        /// `KCOV_REMOTE_ENABLE`.
        RemoteEnable(argument: Remote),
        /// `KCOV_IOC_REMOTE_ATTACH`: subsystem and id.
        Attach(subsystem: u64, id: u64),
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
}

spelled! {
    /// The arguments of mmap.
    #[derive(Copy)]
    pub struct Geometry {
        /// The length in bytes.
        bytes: u64,
        /// The offset in bytes.
        offset: i64,
        /// Whether it is writable.
        writable: bool,
        /// Whether it is executable.
        executable: bool,
        /// Whether it is private.
        private: bool,
    }
}

impl Geometry {
    /// A shared mapping from the start of the buffer.
    #[must_use]
    pub fn of(bytes: u64, writable: bool) -> Geometry {
        Geometry { bytes, offset: 0, writable, executable: false, private: false }
    }
}

spelled! {
    /// An invalid mremap, on Linux.
    #[derive(Copy)]
    pub enum Remap {
        /// Grows the mapping by a page.
        Grow,
        /// Moves the mapping and keeps the old range mapped.
        LeaveOld,
    }
}

spelled! {
    /// The access that a mapping allows.
    #[derive(Copy)]
    #[expect(missing_docs, reason = "the names say it")]
    pub enum Protection {
        None,
        Read,
        ReadWrite,
    }
}

spelled! {
    /// An operation by `thread`, with its `descriptor` or mapping `map`. `new` names the result.
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
}

impl Operation {
    /// The acting thread.
    #[must_use]
    pub fn thread(&self) -> T {
        let mut acting = None;
        self.clone().visit_names(|_, name| acting = acting.or(Some(*name)));
        T(acting.expect("each operation has a thread, first"))
    }

    /// Visits all names with their kinds.
    pub fn visit_names(&mut self, mut see: impl FnMut(Kind, &mut u32)) {
        self.visit(&mut see);
    }

    /// If the operation creates another name for an existing object: the kind, the new name and the
    /// old one.
    #[must_use]
    pub fn copies(&self) -> Option<(Kind, u32, u32)> {
        match self {
            Operation::StartThread { thread, new } | Operation::Fork { thread, new } => {
                Some((Kind::Thread, new.0, thread.0))
            }
            Operation::Duplicate { descriptor, new, .. }
            | Operation::Pass { descriptor, new, .. } => {
                Some((Kind::Descriptor, new.0, descriptor.0))
            }
            _ => None,
        }
    }
}

spelled! {
    /// The outcome of an operation.
    pub enum Outcome {
        /// Success.
        Done,
        /// Failure with this error.
        Refused(errno: Errno),
        /// The count does not change.
        Unchanged,
        /// The count grows to at most this.
        Grown(most: u64),
        /// The observed counts before and after.
        Counted(before: u64, after: u64),
        /// The loaded word.
        Word(word: u64),
        /// Success, without a prediction of the effect.
        Anything,
        /// What no operation implies, in words. Never a prediction.
        Other(what: String),
    }
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
