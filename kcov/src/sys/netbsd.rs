//! NetBSD: requests by pointer, and the driver's error paths.

use super::{Device, raw};
use crate::buffer::Width;
use crate::error::{ErrorKind, Operation, Row};
use crate::mode::AnyMode;
use crate::remote::MAX_HANDLES;
use kcov_sys::linux::kcov_remote_arg;
use kcov_sys::netbsd::{
    KCOV_BUF_MAX_ENTRIES, KCOV_BUF_MIN_ENTRIES, KCOV_IOC_DISABLE, KCOV_IOC_ENABLE,
    KCOV_IOC_SETBUFSIZE, KCOV_MODE_NONE, KCOV_MODE_TRACE_CMP, KCOV_MODE_TRACE_PC,
};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Setter, ioctl};
use std::ffi::c_int;
use std::path::Path;

pub(crate) use kcov_sys::netbsd::KCOV_PATH as DEFAULT_PATH;

/// Entries are 64 bits on every architecture.
pub(crate) const WIDTHS: &[Width] = &[Width::W64];

/// Never said: there is one width.
pub(crate) const WRONG_WIDTH: i32 = 0;

/// Least and greatest buffer size in words.
pub(crate) fn limits(_: Width) -> (u64, u64) {
    (KCOV_BUF_MIN_ENTRIES, KCOV_BUF_MAX_ENTRIES)
}

pub(crate) fn set_size(device: &Device, _: Width, words: u64) -> Result<(), i32> {
    // SAFETY: the request reads one `u64`, which is what the setter points it to.
    let request = unsafe { Setter::<{ KCOV_IOC_SETBUFSIZE as _ }, u64>::new(words) };
    // SAFETY: the request reads nothing else and writes nothing.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// The system's number of the mode, if it has one.
pub(crate) fn number(mode: AnyMode) -> Option<u32> {
    Some(match mode {
        AnyMode::TraceNone => KCOV_MODE_NONE,
        AnyMode::TracePc => KCOV_MODE_TRACE_PC,
        AnyMode::TraceCmp => KCOV_MODE_TRACE_CMP,
    } as u32)
}

pub(crate) fn enable(device: &Device, mode: u32) -> Result<(), i32> {
    // SAFETY: the request reads one `int`, which is what the setter points it to.
    let request = unsafe { Setter::<{ KCOV_IOC_ENABLE as _ }, c_int>::new(mode as c_int) };
    // SAFETY: from here on the kernel writes to the mapped buffer, which is only accessed
    // atomically.
    unsafe { ioctl(device, request) }.map_err(raw)
}

pub(crate) fn disable(device: &Device) -> Result<(), i32> {
    // SAFETY: the request takes no argument.
    let request = unsafe { NoArg::<{ KCOV_IOC_DISABLE as _ }>::new() };
    // SAFETY: the request touches no memory of this process.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// The errno for an argument that makes no sense.
pub(crate) const INVALID: i32 = Errno::INVAL.raw_os_error();

/// Whether [`enable_remote`] exists.
pub(crate) const HAS_REMOTE_HANDLES: bool = false;

/// NetBSD attaches a descriptor to a source instead.
pub(crate) fn enable_remote(_: &Device, _: &kcov_remote_arg<MAX_HANDLES>) -> Result<(), i32> {
    Err(raw(Errno::INVAL))
}

/// What a failure to open the device at `path` means, where the errno alone does not tell.
pub(crate) fn explain_open(_: &Path, _: i32) -> Option<ErrorKind> {
    None
}

/// What the driver's errors mean. Lines name functions of `sys/kern/subr_kcov.c` 1.18, or the
/// file that refuses before the driver is asked.
pub(crate) const ERRORS: &[Row] = &[
    Row {
        operation: Operation::Open,
        errno: Errno::NOENT.raw_os_error(),
        kind: ErrorKind::NotBuiltIn,
        help: "create the node /dev/kcov (`sh MAKEDEV kcov` in /dev) and boot a kernel with \
               `options KCOV` and `makeoptions KCOV=1`",
        source: "file system",
    },
    Row {
        operation: Operation::Open,
        errno: Errno::NXIO.raw_os_error(),
        kind: ErrorKind::NotBuiltIn,
        help: "boot a kernel with `options KCOV` and `makeoptions KCOV=1`: the node is there, the \
               driver is not",
        source: "spec_open, no cdevsw",
    },
    Row {
        operation: Operation::Open,
        errno: Errno::NODEV.raw_os_error(),
        kind: ErrorKind::NotBuiltIn,
        help: "boot a kernel with `options KCOV` and `makeoptions KCOV=1`: the node is there, the \
               driver is not",
        source: "spec_open, no cdevsw",
    },
    Row {
        operation: Operation::Open,
        errno: Errno::ACCESS.raw_os_error(),
        kind: ErrorKind::PermissionDenied,
        help: "run as root or change the mode of /dev/kcov",
        source: "file system",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::SizeOutOfLimits,
        help: "choose a size within the limits of `kcov::limits`",
        source: "kcov_allocbuf",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::EXIST.raw_os_error(),
        kind: ErrorKind::AlreadySized,
        help: "open the device again: a descriptor's buffer is sized once",
        source: "kcov_allocbuf",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::BUSY.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "size the buffer before a thread enables tracing",
        source: "kcov_fops_ioctl",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::NOTTY.raw_os_error(),
        kind: ErrorKind::NotKcov,
        help: "check the path: the file is not a kcov device",
        source: "the driver itself never gives ENOTTY",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::NOMEM.raw_os_error(),
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size: the buffer is wired kernel memory",
        source: "kcov_allocbuf",
    },
    Row {
        operation: Operation::Map,
        errno: Errno::NOMEM.raw_os_error(),
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size or raise the limit on address space",
        source: "kcov_mmap and uvm_mmap",
    },
    Row {
        operation: Operation::Enable,
        errno: Errno::BUSY.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already, or this thread is traced through another \
               descriptor: disable that one first; a thread whose descriptor was closed while \
               enabled can never be traced again",
        source: "kcov_fops_ioctl, KCOV_IOC_ENABLE",
    },
    Row {
        operation: Operation::Enable,
        errno: Errno::NOBUFS.raw_os_error(),
        kind: ErrorKind::NotSized,
        help: "size the buffer first",
        source: "kcov_fops_ioctl, KCOV_IOC_ENABLE",
    },
    Row {
        operation: Operation::Enable,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::ModeNotBuiltIn,
        help: "use a mode that this release knows",
        source: "kcov_fops_ioctl, KCOV_IOC_ENABLE",
    },
    Row {
        operation: Operation::Disable,
        errno: Errno::NOENT.raw_os_error(),
        kind: ErrorKind::NotEnabled,
        help: "disable in the thread that enabled; a forked child inherits the descriptor but is \
               not traced",
        source: "kcov_fops_ioctl, KCOV_IOC_DISABLE",
    },
];
