//! What the errors of NetBSD's driver mean. Numbers are NetBSD's, so that the table can be read,
//! and is tested, on every system.
//!
//! Lines name functions of `sys/kern/subr_kcov.c` 1.18, or the file that refuses before the driver
//! is asked.

use super::{ErrorKind, Operation, Row};

// `sys/sys/errno.h`.
pub(crate) const ENOENT: i32 = 2;
pub(crate) const ENXIO: i32 = 6;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const ENODEV: i32 = 19;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOTTY: i32 = 25;
pub(crate) const EOPNOTSUPP: i32 = 45;
pub(crate) const ENOBUFS: i32 = 55;

pub(crate) const ERRORS: &[Row] = &[
    Row {
        operation: Operation::Open,
        errno: ENOENT,
        kind: ErrorKind::NotBuiltIn,
        help: "create the node /dev/kcov (`sh MAKEDEV kcov` in /dev) and boot a kernel with \
               `options KCOV` and `makeoptions KCOV=1`",
        source: "file system",
    },
    Row {
        operation: Operation::Open,
        errno: ENXIO,
        kind: ErrorKind::NotBuiltIn,
        help: "boot a kernel with `options KCOV` and `makeoptions KCOV=1`: the node is there, the \
               driver is not",
        source: "no driver of that number (sys/kern/subr_devsw.c, cdev_open)",
    },
    Row {
        operation: Operation::Open,
        errno: EACCES,
        kind: ErrorKind::PermissionDenied,
        help: "run as root or change the mode of /dev/kcov",
        source: "file system",
    },
    Row {
        operation: Operation::SetSize,
        errno: EINVAL,
        kind: ErrorKind::SizeOutOfLimits,
        help: "choose a size within `BufferSize::limits`",
        source: "kcov_allocbuf",
    },
    Row {
        operation: Operation::SetSize,
        errno: EEXIST,
        kind: ErrorKind::AlreadySized,
        help: "open the device again: a descriptor's buffer is sized once",
        source: "kcov_allocbuf",
    },
    Row {
        operation: Operation::SetSize,
        errno: EBUSY,
        kind: ErrorKind::AlreadyEnabled,
        help: "size the buffer before a thread enables tracing",
        source: "kcov_setbufsize",
    },
    Row {
        operation: Operation::SetSize,
        errno: ENOTTY,
        kind: ErrorKind::NotKcov,
        help: "check the path: the file is not a kcov device",
        source: "files and most drivers (sys/kern/sys_generic.c); this driver never gives it",
    },
    Row {
        operation: Operation::SetSize,
        errno: ENODEV,
        kind: ErrorKind::NotKcov,
        help: "check the path: the file is not a kcov device",
        source: "drivers without requests (sys/sys/conf.h, noioctl)",
    },
    Row {
        operation: Operation::SetSize,
        errno: EOPNOTSUPP,
        kind: ErrorKind::NotKcov,
        help: "check the path: the file is not a kcov device",
        source: "/dev/null and its like (sys/dev/mm.c)",
    },
    Row {
        operation: Operation::SetSize,
        errno: ENOMEM,
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size: the buffer is wired kernel memory",
        source: "kcov_allocbuf, uvm_map",
    },
    Row {
        operation: Operation::Map,
        errno: ENOMEM,
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size or raise the limit on address space",
        source: "kcov_fops_mmap and uvm_mmap",
    },
    Row {
        operation: Operation::MoveDescriptor,
        errno: EINVAL,
        kind: ErrorKind::DescriptorOutOfLimits,
        help: "choose a smaller number, or raise the limit on open files",
        source: "F_DUPFD_CLOEXEC (sys/kern/sys_descrip.c), beyond RLIMIT_NOFILE",
    },
    Row {
        operation: Operation::MoveDescriptor,
        errno: EMFILE,
        kind: ErrorKind::DescriptorOutOfLimits,
        help: "close descriptors, or raise the limit on open files",
        source: "fd_dup (sys/kern/kern_descrip.c)",
    },
    Row {
        operation: Operation::Enable,
        errno: EBUSY,
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already, or this thread is traced through another \
               descriptor: disable that one first; a thread whose descriptor was closed while \
               enabled can never be traced again",
        source: "kcov_enable",
    },
    Row {
        operation: Operation::Enable,
        errno: ENOBUFS,
        kind: ErrorKind::NotSized,
        help: "size the buffer first",
        source: "kcov_enable",
    },
    Row {
        operation: Operation::Enable,
        errno: EINVAL,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "use a mode that this release knows",
        source: "kcov_enable, kcov_mode_is_valid",
    },
    Row {
        operation: Operation::Disable,
        errno: ENOENT,
        kind: ErrorKind::NotEnabled,
        help: "disable in the thread that enabled; a forked child inherits the descriptor but is \
               not traced",
        source: "kcov_disable",
    },
    Row {
        operation: Operation::Attach,
        errno: ENOENT,
        kind: ErrorKind::NoSuchSource,
        help: "boot a kernel with vhci(4), and name a bus and a port that it has",
        source: "kcov_remote_attach",
    },
    Row {
        operation: Operation::Attach,
        errno: EEXIST,
        kind: ErrorKind::AlreadyEnabled,
        help: "a thread is traced through this device: disable it there first, or attach another \
               device",
        source: "kcov_remote_attach",
    },
    Row {
        operation: Operation::Attach,
        errno: EINVAL,
        kind: ErrorKind::Unsupported,
        help: "run NetBSD 10 or later: earlier releases have no remote coverage",
        source: "kcov_fops_ioctl of NetBSD 9, an unknown request",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: EBUSY,
        kind: ErrorKind::SourceInUse,
        help: "the source is collected from already: disable that first, through any device that \
               is attached to it",
        source: "kcov_remote_enable",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: EINVAL,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "use a mode that this release knows",
        source: "kcov_enable, kcov_mode_is_valid",
    },
    Row {
        operation: Operation::DisableRemote,
        errno: ENOENT,
        kind: ErrorKind::EndedElsewhere,
        help: "read the trace before you disable, and keep others from disabling, detaching and \
               closing what is attached to the source",
        source: "kcov_remote_disable",
    },
];
