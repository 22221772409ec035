//! Linux's errors and their meanings. The numbers are those of the architectures with kcov, not the
//! host's, so every system can read and test the table.
//!
//! Sources name functions of `kernel/kcov.c` in Linux 7.3, or the file that refuses before the
//! driver runs.

use super::{Row, rows};
pub(crate) use kcov_sys::errno::linux::*;
pub(crate) use kcov_sys::linux::ENOTSUPP;

pub(crate) const ERRORS: &[Row] = &rows![
    Open, ENOENT => NotBuiltIn:
        "build the kernel with CONFIG_KCOV=y and CONFIG_DEBUG_FS=y",
        "no debugfs file without CONFIG_KCOV (kcov_init)";
    Open, EACCES => PermissionDenied:
        "run as root: by default only root may use debugfs and its kcov file; in a container, \
         bind-mount the file and grant access to it",
        "debugfs root 0700, file 0600 (fs/debugfs/inode.c, kcov_init)";
    Open, EPERM => LockedDown:
        "boot without kernel lockdown (see /sys/kernel/security/lockdown): it blocks every \
         debugfs file that has ioctls",
        "LOCKDOWN_DEBUGFS (fs/debugfs/file.c, debugfs_locked_down)";
    Open, ENOMEM => OutOfMemory: "kcov_open";
    Open, EMFILE => DescriptorOutOfLimits: "alloc_fd (fs/file.c), beyond RLIMIT_NOFILE";
    StartThread, EAGAIN => ThreadOutOfLimits:
        "end threads, or raise the limit on processes or the container's on pids",
        "copy_process (kernel/fork.c), RLIMIT_NPROC and pids.max";
    SetSize, EINVAL => SizeOutOfLimits:
        "choose a size within `BufferSize::limits`",
        "kcov_ioctl, KCOV_INIT_TRACE";
    SetSize, ENOMEM => OutOfMemory:
        "choose a smaller size: the buffer is unswappable kernel memory",
        "kcov_ioctl, KCOV_INIT_TRACE, vmalloc_user";
    // Another file of debugfs.
    SetSize, ENOTTY => NotKcov: "VFS; the driver always knows the request";
    Map, ENOMEM => OutOfMemory:
        "choose a smaller size or raise the limit on address space",
        "kcov_mmap and mm/mmap.c";
    Map, EEXIST => AddressInUse: "this crate, because a fixed mapping would replace what is there";
    MoveDescriptor, EINVAL => DescriptorOutOfLimits:
        "choose a number from 0 to the limit on open files, or raise that",
        "f_dupfd (fs/file.c), beyond RLIMIT_NOFILE";
    MoveDescriptor, EMFILE => DescriptorOutOfLimits: "alloc_fd (fs/file.c)";
    MoveDescriptor, EEXIST => DescriptorInUse: "this crate, because dup2 would close that file";
    Check, EFAULT => BufferLost:
        "copy_from_user (lib/usercopy.c), of a page that is not mapped or was truncated";
    Check, EMFILE => DescriptorOutOfLimits: "alloc_fd (fs/file.c), for a pipe";
    Enable, EINVAL => AlreadyEnabled:
        "this device is already enabled, by this thread or another: disable it there first, or \
         open one device per thread",
        "kcov_ioctl_locked, KCOV_ENABLE, mode not KCOV_MODE_INIT";
    Enable, EBUSY => AlreadyEnabled:
        "this thread is traced through another descriptor: disable that one first, or enable this \
         one in another thread",
        "kcov_ioctl_locked, KCOV_ENABLE, t->kcov";
    Enable, ENOTSUPP => ModeNotBuiltIn:
        "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        "kcov_get_mode, ENOTSUPP (524, a number internal to the kernel)";
    Disable, EINVAL => NotEnabled: "kcov_ioctl_locked, KCOV_DISABLE";
    EnableRemote, EINVAL => AlreadyEnabled:
        "this device is already enabled: disable it first",
        "kcov_ioctl_locked, KCOV_REMOTE_ENABLE, mode not KCOV_MODE_INIT; kcov_check_handle, where \
         a handle explains it";
    EnableRemote, EBUSY => AlreadyEnabled:
        "this thread already has a remote session or, before Linux 7.2, any session: enable \
         remote coverage in a helper thread",
        "kcov_ioctl_locked, KCOV_REMOTE_ENABLE, t->kcov_remote";
    EnableRemote, EEXIST => HandleInUse:
        "choose another common handle, or wait until the device that collects from this handle is \
         disabled",
        "kcov_remote_add";
    EnableRemote, ENOTSUPP => ModeNotBuiltIn:
        "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        "kcov_get_mode, ENOTSUPP (524, a number internal to the kernel)";
    EnableRemote, ENOMEM => OutOfMemory: "kcov_remote_add and memdup_user";
];
