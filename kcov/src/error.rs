//! What failed, of which kind, with which errno, and what to do about it.

use crate::sys;
use std::fmt;
use std::io;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

/// A failed operation on a kcov device.
///
/// Its text is one line: the operation, what was wrong, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    operation: Operation,
    kind: ErrorKind,
    errno: Option<i32>,
    help: Option<&'static str>,
    path: Option<PathBuf>,
    size: Option<(u64, RangeInclusive<u64>)>,
}

/// What was asked of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// open(2)
    Open,
    /// `KCOV_INIT_TRACE` on Linux, `KCOV_IOC_SETBUFSIZE` on NetBSD
    SetSize,
    /// mmap(2)
    Map,
    /// `F_DUPFD_CLOEXEC` of fcntl(2)
    MoveDescriptor,
    /// mprotect(2), pkey_mprotect(2)
    Protect,
    /// pkey_alloc(2) on Linux
    AllocateKey,
    /// `KCOV_ENABLE` on Linux, `KCOV_IOC_ENABLE` on NetBSD
    Enable,
    /// `KCOV_UNIQUE_ENABLE`, which is proposed for Linux
    EnableUnique,
    /// `KCOV_RESET_TRACE`, which is proposed for Linux
    ResetTrace,
    /// `KCOV_IOC_REMOTE_ATTACH` on NetBSD
    Attach,
    /// `KCOV_REMOTE_ENABLE` on Linux, `KCOV_IOC_ENABLE` of an attached device on NetBSD
    EnableRemote,
    /// `KCOV_DISABLE` on Linux, `KCOV_IOC_DISABLE` on NetBSD
    Disable,
    /// `KCOV_IOC_DISABLE` of an attached device on NetBSD
    DisableRemote,
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open the kcov device",
            Operation::SetSize => "set the size of the kcov buffer",
            Operation::Map => "map the kcov buffer",
            Operation::MoveDescriptor => "move the descriptor of the kcov device",
            Operation::Protect => "change the protection of the kcov buffer",
            Operation::AllocateKey => "allocate a protection key for the kcov buffer",
            Operation::Enable => "enable kcov tracing of this thread",
            Operation::EnableUnique => "enable kcov tracing of this thread with a bitmap",
            Operation::ResetTrace => "reset the trace of this thread",
            Operation::Attach => "attach the kcov device to a source",
            Operation::EnableRemote => "enable collection of remote kcov coverage",
            Operation::Disable => "disable kcov tracing of this thread",
            Operation::DisableRemote => "disable collection of remote kcov coverage",
        })
    }
}

/// What was wrong, the same on all systems.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// This crate knows no kcov on this system.
    Unsupported,
    /// The kernel has no kcov, or the device's file is missing.
    NotBuiltIn,
    /// Linux: debugfs, where the device is, is not mounted there.
    DebugfsNotMounted,
    /// The process may not open the device.
    PermissionDenied,
    /// Linux: kernel lockdown closes the device.
    LockedDown,
    /// The file is not a kcov device.
    NotKcov,
    /// The system does not allow a buffer of this size.
    SizeOutOfLimits,
    /// The process may have no descriptor with such a number, or no more descriptors.
    DescriptorOutOfLimits,
    /// The device was not opened to be recovered.
    NotRecoverable,
    /// The processor, the kernel or this crate has no protection keys here.
    NoProtectionKeys,
    /// The process has no protection key left.
    ProtectionKeysInUse,
    /// The buffer has a size already.
    AlreadySized,
    /// The buffer has no size yet.
    NotSized,
    /// The system has no such mode.
    ModeNotSupported,
    /// The kernel was built without the mode.
    ModeNotBuiltIn,
    /// The device is enabled already, or the thread is traced through another one.
    AlreadyEnabled,
    /// Linux: the handle is collected from by another device.
    HandleInUse,
    /// Linux: the kernel does not know the subsystem of a handle.
    UnknownSubsystem,
    /// Linux: more handles than a session may have.
    TooManyHandles,
    /// NetBSD: the kernel has no such source of remote coverage.
    NoSuchSource,
    /// NetBSD: the source is collected from already.
    SourceInUse,
    /// NetBSD: somebody else who is attached to the source has ended the collection.
    EndedElsewhere,
    /// The device is not enabled by this thread.
    NotEnabled,
    /// The kernel could not allocate what is needed.
    OutOfMemory,
    /// An errno that the driver is not known to give here.
    Other,
}

impl ErrorKind {
    fn text(self) -> &'static str {
        match self {
            ErrorKind::Unsupported => "kcov is not supported on this system",
            ErrorKind::NotBuiltIn => "this kernel has no kcov",
            ErrorKind::DebugfsNotMounted => "debugfs is not mounted there",
            ErrorKind::PermissionDenied => "permission denied",
            ErrorKind::LockedDown => "kernel lockdown forbids it",
            ErrorKind::NotKcov => "not a kcov device",
            ErrorKind::SizeOutOfLimits => "the size is out of limits",
            ErrorKind::DescriptorOutOfLimits => "there is no such number for it",
            ErrorKind::NotRecoverable => "it was not opened to be recovered",
            ErrorKind::NoProtectionKeys => "this machine has no protection keys",
            ErrorKind::ProtectionKeysInUse => "all protection keys are in use",
            ErrorKind::AlreadySized => "it has a size already",
            ErrorKind::NotSized => "its buffer has no size yet",
            ErrorKind::ModeNotSupported => "this system has no such mode",
            ErrorKind::ModeNotBuiltIn => "this kernel was built without the mode",
            ErrorKind::AlreadyEnabled => "already enabled",
            ErrorKind::HandleInUse => "a handle is in use",
            ErrorKind::UnknownSubsystem => "a handle's subsystem is unknown to this kernel",
            ErrorKind::TooManyHandles => "more than 256 handles",
            ErrorKind::NoSuchSource => "this kernel has no such source",
            ErrorKind::SourceInUse => "the source is in use",
            ErrorKind::EndedElsewhere => "it was ended elsewhere",
            ErrorKind::NotEnabled => "not enabled by this thread",
            ErrorKind::OutOfMemory => "out of memory",
            ErrorKind::Other => "unexpected error",
        }
    }

    /// Help that does not depend on an errno, for kinds that are found otherwise.
    fn help(self) -> Option<&'static str> {
        match self {
            ErrorKind::DebugfsNotMounted => {
                Some("run `mount -t debugfs none /sys/kernel/debug` as root, or give the path")
            }
            ErrorKind::ModeNotSupported => Some("use a mode that this system has"),
            ErrorKind::NotKcov => Some("check the path"),
            ErrorKind::NotRecoverable => Some("open it with `Builder::recoverable`"),
            ErrorKind::NoProtectionKeys => Some("use `Builder::write_protected`, which needs none"),
            ErrorKind::TooManyHandles => Some("spread them over several devices and threads"),
            ErrorKind::UnknownSubsystem => Some("use subsystems that this kernel has, such as USB"),
            ErrorKind::Unsupported => Some("run on a system that has it"),
            _ => None,
        }
    }
}

/// One errno of one operation: what it means and who gives it.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) operation: Operation,
    pub(crate) errno: i32,
    pub(crate) kind: ErrorKind,
    pub(crate) help: &'static str,
    /// Where in the system's source the error comes from.
    #[allow(dead_code, reason = "read by people, and by the reference's generator")]
    pub(crate) source: &'static str,
}

impl Error {
    pub(crate) fn new(operation: Operation, kind: ErrorKind) -> Error {
        Error { operation, kind, errno: None, help: kind.help(), path: None, size: None }
    }

    /// Looks the errno up in the system's table.
    pub(crate) fn from_errno(operation: Operation, errno: i32) -> Error {
        Error::from_table(sys::ERRORS, operation, errno)
    }

    fn from_table(table: &[Row], operation: Operation, errno: i32) -> Error {
        let row = table.iter().find(|row| row.operation == operation && row.errno == errno);
        let mut error = Error::new(operation, row.map_or(ErrorKind::Other, |row| row.kind));
        error.errno = Some(errno).filter(|errno| *errno != 0);
        error.help = row.map(|row| row.help);
        error
    }

    pub(crate) fn with_kind(mut self, kind: ErrorKind) -> Error {
        if self.kind != kind {
            self.kind = kind;
            self.help = kind.help();
        }
        self
    }

    pub(crate) fn with_path(mut self, path: &Path) -> Error {
        self.path = Some(path.to_owned());
        self
    }

    pub(crate) fn with_limits(mut self, asked: u64, limits: RangeInclusive<u64>) -> Error {
        self.size = Some((asked, limits));
        self
    }

    /// What was asked of the kernel.
    #[must_use]
    pub fn operation(&self) -> Operation {
        self.operation
    }

    /// What was wrong.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// The errno that the kernel gave, if it was asked.
    #[must_use]
    pub fn raw_os_error(&self) -> Option<i32> {
        self.errno
    }

    /// One sentence about what to do, where it is known.
    #[must_use]
    pub fn help(&self) -> Option<&str> {
        self.help
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {}", self.operation)?;
        if let Some(path) = &self.path {
            write!(f, " {}", path.display())?;
        }
        write!(f, ": {}", self.kind.text())?;
        if let Some((asked, limits)) = &self.size {
            write!(
                f,
                " ({asked} words asked for, {} to {} words allowed)",
                limits.start(),
                limits.end()
            )?;
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

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.kind {
            ErrorKind::Unsupported
            | ErrorKind::ModeNotSupported
            | ErrorKind::ModeNotBuiltIn
            | ErrorKind::NoProtectionKeys
            | ErrorKind::UnknownSubsystem => io::ErrorKind::Unsupported,
            ErrorKind::NotBuiltIn | ErrorKind::DebugfsNotMounted | ErrorKind::NoSuchSource => {
                io::ErrorKind::NotFound
            }
            ErrorKind::PermissionDenied | ErrorKind::LockedDown => io::ErrorKind::PermissionDenied,
            ErrorKind::NotKcov
            | ErrorKind::SizeOutOfLimits
            | ErrorKind::DescriptorOutOfLimits
            | ErrorKind::NotRecoverable
            | ErrorKind::TooManyHandles => io::ErrorKind::InvalidInput,
            ErrorKind::AlreadyEnabled
            | ErrorKind::HandleInUse
            | ErrorKind::ProtectionKeysInUse
            | ErrorKind::SourceInUse => io::ErrorKind::ResourceBusy,
            ErrorKind::OutOfMemory => io::ErrorKind::OutOfMemory,
            ErrorKind::AlreadySized
            | ErrorKind::NotSized
            | ErrorKind::NotEnabled
            | ErrorKind::EndedElsewhere
            | ErrorKind::Other => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use std::fmt::Write as _;

    /// Three lines for each row. The reference's pages are made from the snapshots of it.
    fn as_text(table: &[Row]) -> String {
        let mut text = String::new();
        for row in table {
            let error = Error::from_table(table, row.operation, row.errno);
            writeln!(text, "{:?} {} {:?}", row.operation, row.errno, row.kind).unwrap();
            writeln!(text, "    {error}\n    from {}", row.source).unwrap();
        }
        text
    }

    #[test]
    fn every_row_of_the_table_as_text() {
        insta::assert_snapshot!(as_text(sys::ERRORS));
    }

    #[test]
    fn every_row_of_netbsds_table_as_text() {
        insta::assert_snapshot!(as_text(sys::netbsd_errors::ERRORS));
    }

    #[test]
    fn no_errno_of_an_operation_has_two_rows() {
        for table in [sys::ERRORS, sys::netbsd_errors::ERRORS] {
            let mut seen = HashSet::new();
            for row in table {
                let new = seen.insert((row.operation, row.errno));
                assert!(new, "{:?} {}", row.operation, row.errno);
            }
        }
    }

    #[test]
    fn an_unknown_errno_is_kept() {
        let error = Error::from_errno(Operation::Enable, 9999);
        assert_eq!((error.kind(), error.raw_os_error()), (ErrorKind::Other, Some(9999)));
        assert_eq!(error.help(), None);
        insta::assert_snapshot!(error.to_string());
    }

    #[test]
    fn as_an_io_error_it_keeps_kind_and_text() {
        let error = Error::from_errno(Operation::Open, 13).with_path(Path::new("/dev/kcov"));
        let text = error.to_string();
        let io = io::Error::from(error);
        assert_eq!((io.kind(), io.to_string()), (io::ErrorKind::PermissionDenied, text));
    }
}
