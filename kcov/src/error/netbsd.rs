//! NetBSD's errors and their meanings. The numbers are NetBSD's, so every system can read and test
//! the table.
//!
//! Sources name functions of `sys/kern/subr_kcov.c` 1.18, or the file that refuses before the
//! driver runs.

use super::{Row, rows};
pub(crate) use kcov_sys::errno::netbsd::*;

pub(crate) const ERRORS: &[Row] = &rows![
    Open, ENOENT => NotBuiltIn:
        "create the node /dev/kcov (`sh MAKEDEV kcov` in /dev) and boot a kernel with `options \
         KCOV` and `makeoptions KCOV=1`",
        "file system";
    Open, ENXIO => NotBuiltIn:
        "boot a kernel with `options KCOV` and `makeoptions KCOV=1`: the node exists, but the \
         driver does not",
        "no driver of that number (sys/kern/subr_devsw.c, cdev_open)";
    Open, EACCES => PermissionDenied:
        "run as root or change the mode of /dev/kcov",
        "file system";
    Open, EMFILE => DescriptorOutOfLimits:
        "fd_alloc (sys/kern/kern_descrip.c), beyond RLIMIT_NOFILE";
    StartThread, EAGAIN => ThreadOutOfLimits:
        "end threads, or raise the limit on threads (`ulimit -r`)",
        "lwp_create (sys/kern/kern_lwp.c), beyond RLIMIT_NTHR";
    SetSize, EINVAL => SizeOutOfLimits:
        "choose a size within `BufferSize::limits`",
        "kcov_allocbuf";
    SetSize, ENOTTY => NotKcov:
        "files and most drivers (sys/kern/sys_generic.c); this driver never returns it";
    SetSize, ENODEV => NotKcov: "drivers without requests (sys/sys/conf.h, noioctl)";
    SetSize, EOPNOTSUPP => NotKcov: "/dev/null and its like (sys/dev/mm.c)";
    SetSize, ENOMEM => OutOfMemory:
        "choose a smaller size: the buffer is wired kernel memory",
        "kcov_allocbuf, uvm_map";
    Map, ENOMEM => OutOfMemory:
        "choose a smaller size or raise the limit on address space",
        "kcov_fops_mmap and uvm_mmap";
    Map, EEXIST => AddressInUse: "this crate, because a fixed mapping would replace what is there";
    MoveDescriptor, EINVAL => DescriptorOutOfLimits:
        "choose a number from 0 to the limit on open files, or raise that",
        "F_DUPFD_CLOEXEC (sys/kern/sys_descrip.c), beyond RLIMIT_NOFILE";
    MoveDescriptor, EMFILE => DescriptorOutOfLimits: "fd_dup (sys/kern/kern_descrip.c)";
    MoveDescriptor, EEXIST => DescriptorInUse: "this crate, because dup2 would close that file";
    Check, EFAULT => BufferLost: "copyin, of a page that is not mapped";
    Check, EMFILE => DescriptorOutOfLimits: "fd_alloc (sys/kern/kern_descrip.c), for a pipe";
    Enable, EBUSY => AlreadyEnabled:
        "this device is already enabled, or this thread is traced through another descriptor: \
         disable that one first; a thread whose descriptor was closed while enabled can never be \
         traced again",
        "kcov_enable";
    Enable, EINVAL => ModeNotBuiltIn:
        "use a mode that this release supports",
        "kcov_enable, kcov_mode_is_valid";
    Disable, ENOENT => NotEnabled: "kcov_disable";
    Attach, ENOENT => NoSuchSource:
        "boot a kernel with vhci(4), and name a bus and a port that it has",
        "kcov_remote_attach";
    Attach, EEXIST => AlreadyEnabled:
        "a thread is traced through this device: disable it there first, or attach another \
         device",
        "kcov_remote_attach";
    Attach, EINVAL => Unsupported:
        "run NetBSD 10 or later: earlier releases have no remote coverage",
        "kcov_fops_ioctl of NetBSD 9, an unknown request";
    EnableRemote, EBUSY => SourceInUse:
        "another session collects from the source: disable it first, through any attached device",
        "kcov_remote_enable";
    EnableRemote, EINVAL => ModeNotBuiltIn:
        "use a mode that this release supports",
        "kcov_enable, kcov_mode_is_valid";
    DisableRemote, ENOENT => EndedElsewhere:
        "read the trace before you disable, and keep others from disabling, detaching or closing \
         devices attached to the source",
        "kcov_remote_disable";
];
