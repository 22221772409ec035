//! Errors: the operation, the kind, the errno, and what to do.

#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "for fake kernels"))]
pub(crate) mod linux;
#[cfg_attr(not(target_os = "netbsd"), allow(dead_code, reason = "for fake kernels"))]
pub(crate) mod netbsd;

use crate::system::{LINUX, NETBSD, System};
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;

/// Defines an enum with a text for each variant.
macro_rules! texts {
    (
        $(#[doc = $about:literal])*
        $enum:ident {$(
            $(#[doc = $doc:literal])*
            $(#[cfg($cfg:meta)])?
            $name:ident: $text:literal $(, $help:literal)?;
        )*}
    ) => {
        $(#[doc = $about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $enum {$(
            $(#[doc = $doc])*
            $(#[cfg($cfg)])?
            $name,
        )*}

        impl $enum {
            /// All with their documentation, for the project's reference.
            #[doc(hidden)]
            pub const DOCUMENTED: &[($enum, &str)] = &[$(
                $(#[cfg($cfg)])?
                ($enum::$name, concat!($($doc),*).trim_ascii_start()),
            )*];

            /// The text in messages, for the project's C header.
            #[doc(hidden)]
            pub fn text(self) -> &'static str {
                match self {$(
                    $(#[cfg($cfg)])?
                    $enum::$name => $text,
                )*}
            }

            /// What to do about it, unless that depends on the errno.
            #[doc(hidden)]
            pub fn help(self) -> Option<&'static str> {
                match self {$(
                    $(#[cfg($cfg)])?
                    $enum::$name => None $(.or(Some($help)))?,
                )*}
            }
        }
    };
}

/// Builds the rows of a table: operation, errno, kind, what to do unless the kind tells, and the
/// source of the error.
macro_rules! rows {
    ($($operation:ident, $errno:ident => $kind:ident: $($text:literal),*;)*) => {
        [$(crate::error::Row {
            operation: crate::error::Operation::$operation,
            errno: $errno,
            kind: crate::error::ErrorKind::$kind,
            text: &[$($text),*],
        },)*]
    };
}
pub(crate) use rows;

/// A failed operation on a kcov device.
///
/// Displays as one line: the operation, what was wrong, and what to do.
///
/// ```
/// let error = kcov::Device::builder().path("/dev/null").open().unwrap_err();
/// assert_eq!(error.operation(), kcov::Operation::Open);
/// println!("{error}"); // cannot open the kcov device /dev/null: not a kcov device; check the path
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    operation: Operation,
    kind: ErrorKind,
    errno: Option<i32>,
    help: Option<&'static str>,
    /// Shared, so that a failure in a forked child allocates nothing.
    path: Option<Arc<Path>>,
    size: Option<(u64, RangeInclusive<u64>)>,
}

texts! {
    /// The operation that failed.
    Operation {
        /// open(2)
        Open: "open the kcov device";
        /// `KCOV_INIT_TRACE` on Linux, `KCOV_IOC_SETBUFSIZE` on NetBSD
        SetSize: "set the size of the kcov buffer";
        /// mmap(2)
        Map: "map the kcov buffer";
        /// pthread_create(3), to probe
        StartThread: "start a thread to probe kcov";
        /// `F_DUPFD_CLOEXEC` of fcntl(2)
        MoveDescriptor: "move the descriptor of the kcov device";
        /// writev(2) of the buffer to a pipe
        Check: "check that the kcov buffer can be read";
        /// `KCOV_ENABLE` on Linux, `KCOV_IOC_ENABLE` on NetBSD
        Enable: "enable kcov tracing of this thread";
        /// `KCOV_UNIQUE_ENABLE`, which is proposed for Linux
        #[cfg(feature = "proposed")]
        EnableUnique: "enable kcov tracing of this thread with a bitmap";
        /// `KCOV_RESET_TRACE`, which is proposed for Linux
        #[cfg(feature = "proposed")]
        ResetTrace: "reset the trace of this thread";
        /// `KCOV_IOC_REMOTE_ATTACH` on NetBSD
        Attach: "attach the kcov device to a source";
        /// `KCOV_REMOTE_ENABLE` on Linux, `KCOV_IOC_ENABLE` of an attached device on NetBSD
        EnableRemote: "enable collection of remote kcov coverage";
        /// `KCOV_DISABLE` on Linux, `KCOV_IOC_DISABLE` on NetBSD
        Disable: "disable kcov tracing of this thread";
        /// `KCOV_IOC_DISABLE` of an attached device on NetBSD
        DisableRemote: "disable collection of remote kcov coverage";
    }
}

texts! {
    /// What was wrong. The same on all systems.
    ErrorKind {
        /// This crate does not support kcov, or this part of it, on this system.
        Unsupported: "not supported on this system",
            "run on a system that has it";
        /// The kernel has no kcov, or the device's file is missing.
        NotBuiltIn: "this kernel has no kcov";
        /// Linux: debugfs, where the device is, is not mounted there.
        DebugfsNotMounted: "debugfs is not mounted there",
            "run `mount -t debugfs none /sys/kernel/debug` as root, or give the path";
        /// The process may not open the device.
        PermissionDenied: "permission denied";
        /// Linux: kernel lockdown blocks the device.
        LockedDown: "kernel lockdown forbids it";
        /// The file is not a kcov device.
        NotKcov: "not a kcov device",
            "check the path";
        /// The system does not allow a buffer of this size.
        SizeOutOfLimits: "the size is out of limits";
        /// The process may have no descriptor with such a number, or no more descriptors.
        DescriptorOutOfLimits: "no descriptor is left within the limits",
            "close descriptors, or raise the limit on open files";
        /// The process, its user or its container has reached its limit on threads.
        ThreadOutOfLimits: "no more threads are allowed";
        /// The requested descriptor is another file's.
        DescriptorInUse: "the descriptor is in use",
            "choose another number, or close the file that has it";
        /// Something else is mapped at the requested address, or no page can start there.
        AddressInUse: "the buffer cannot be mapped at the requested address",
            "choose the start of a page that is free, or leave the choice to the kernel";
        /// The buffer, or a part of it, can no longer be read.
        BufferLost: "the buffer was unmapped or truncated",
            "abandon the device and open another one";
        /// The kernel was built without the mode.
        ModeNotBuiltIn: "this kernel was built without the mode";
        /// The device works but records nothing: no kernel code is instrumented.
        NotInstrumented: "no kernel code is instrumented",
            "build the kernel with CONFIG_KCOV_INSTRUMENT_ALL=y (Linux) or `makeoptions KCOV=1` (NetBSD)";
        /// The device is already enabled, or the thread is traced through another one.
        AlreadyEnabled: "already enabled";
        /// Linux: another device collects from the handle.
        HandleInUse: "a handle is in use";
        /// Linux: the kernel does not know the subsystem of a handle.
        UnknownSubsystem: "a handle's subsystem is unknown to this kernel",
            "use a subsystem that this kernel has, such as USB";
        /// Linux: the session has more handles than the kernel allows.
        TooManyHandles: "more than 256 handles",
            "spread them over several devices and threads";
        /// NetBSD: the kernel has no such source of remote coverage.
        NoSuchSource: "this kernel has no such source";
        /// NetBSD: another device collects from the source.
        SourceInUse: "the source is in use";
        /// NetBSD: another user attached to the source ended the collection.
        EndedElsewhere: "collection was already ended elsewhere";
        /// This thread did not enable the device.
        NotEnabled: "not enabled by this thread",
            "disable on the thread that enabled; a forked child inherits the descriptor but is not traced";
        /// The kernel could not allocate memory.
        OutOfMemory: "out of memory",
            "free memory and try again";
        /// An errno that the driver is not known to return here.
        Other: "unexpected error";
    }
}

/// One errno of one operation: its meaning and its source.
#[doc(hidden)]
#[derive(Debug)]
#[allow(missing_docs, reason = "for the project's reference")]
pub struct Row {
    pub operation: Operation,
    pub errno: i32,
    pub kind: ErrorKind,
    /// What to do, unless the kind tells, and where in the system's source the error comes from.
    pub text: &'static [&'static str],
}

#[allow(missing_docs, reason = "for the project's reference")]
impl Row {
    pub fn help(&self) -> Option<&'static str> {
        match self.text {
            [help, _] => Some(help),
            _ => self.kind.help(),
        }
    }

    pub fn source(&self) -> &'static str {
        self.text.last().copied().unwrap_or_default()
    }
}

/// The errors of Linux and of NetBSD, for the project's reference.
#[doc(hidden)]
pub const ERRORS: [&[&[Row]]; 2] = [LINUX.errors, NETBSD.errors];

impl Error {
    pub(crate) fn new(operation: Operation, kind: ErrorKind) -> Error {
        Error { operation, kind, errno: None, help: kind.help(), path: None, size: None }
    }

    /// Looks up the errno in the system's table.
    pub(crate) fn from_errno(system: &System, operation: Operation, errno: i32) -> Error {
        let mut rows = system.errors.iter().copied().flatten();
        let row = rows.find(|row| row.operation == operation && row.errno == errno);
        let mut error = Error::new(operation, row.map_or(ErrorKind::Other, |row| row.kind));
        error.errno = Some(errno).filter(|errno| *errno != 0);
        error.help = row.and_then(Row::help);
        error
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Error {
        if self.kind != kind {
            self.kind = kind;
            self.help = kind.help();
        }
        self
    }

    pub(crate) fn with_path(mut self, path: Option<&Arc<Path>>) -> Error {
        self.path = path.cloned();
        self
    }

    pub(crate) fn with_limits(mut self, asked: u64, limits: RangeInclusive<u64>) -> Error {
        self.size = Some((asked, limits));
        self
    }

    /// The operation that failed.
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What was wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The errno, if a system call failed.
    pub fn raw_os_error(&self) -> Option<i32> {
        self.errno
    }

    /// One sentence about what to do, if known.
    pub fn help(&self) -> Option<&str> {
        self.help
    }

    /// The file that could not be opened, or the device's, if this crate opened it.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.operation.text())?;
        if let Some(path) = &self.path {
            match self.operation {
                Operation::Open => write!(f, " {}", path.display())?,
                _ => write!(f, " ({})", path.display())?,
            }
        }
        write!(f, ": {}", self.kind.text())?;
        if let Some((asked, limits)) = &self.size {
            let (least, most) = limits.clone().into_inner();
            write!(f, " ({asked} words asked for, {least} to {most} words allowed)")?;
        }
        if let Some(errno) = self.errno {
            write!(f, " (errno {errno})")?;
        }
        if let Some(help) = self.help {
            write!(f, "; {help}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Error {}

/// Keeps the errno, or an [`io::ErrorKind`] if no system call failed. Allocates nothing, so it may be
/// used after fork(2) in a process with threads.
impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        match (error.errno, error.kind) {
            (Some(errno), _) => io::Error::from_raw_os_error(errno),
            (None, ErrorKind::OutOfMemory) => io::ErrorKind::OutOfMemory.into(),
            (None, ErrorKind::SourceInUse) => io::ErrorKind::ResourceBusy.into(),
            (None, ErrorKind::SizeOutOfLimits | ErrorKind::TooManyHandles) => {
                io::ErrorKind::InvalidInput.into()
            }
            (None, _) => io::ErrorKind::Unsupported.into(),
        }
    }
}

/// Every row of the tables, as text.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{LINUX, NETBSD};
    use std::collections::HashSet;

    #[test]
    fn no_errno_of_an_operation_has_two_rows() {
        for system in [&LINUX, &NETBSD] {
            let mut seen = HashSet::new();
            for row in system.errors.iter().copied().flatten() {
                let new = seen.insert((row.operation, row.errno));
                assert!(new, "{:?} {}", row.operation, row.errno);
            }
        }
    }

    #[test]
    fn an_unknown_errno_is_kept() {
        let error = Error::from_errno(&LINUX, Operation::Enable, 9999);
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Other, Some(9999)));
        assert_eq!(error.help(), None);
        assert_eq!(
            error.to_string(),
            "cannot enable kcov tracing of this thread: unexpected error (errno 9999)"
        );
    }

    impl Error {
        /// The accepted sizes in words, if a size was refused.
        pub(crate) fn limits(&self) -> Option<&RangeInclusive<u64>> {
            self.size.as_ref().map(|(_, limits)| limits)
        }
    }
}
