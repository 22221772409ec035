//! Linux's errors and their meanings. The numbers are those of the architectures with kcov, not the
//! host's, so every system can read and test the table.
//!
//! Sources name functions of `kernel/kcov.c` in Linux 7.3, or the file that refuses before the
//! driver runs.

use super::{Row, rows};
pub(crate) use kcov_sys::linux::ENOTSUPP;

// `include/uapi/asm-generic/errno-base.h`, which all architectures share.
pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const EAGAIN: i32 = 11;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EFAULT: i32 = 14;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOTTY: i32 = 25;
#[cfg(feature = "proposed")]
const EOPNOTSUPP: i32 = 95;

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
    Open, ENOMEM => OutOfMemory:
        "free memory and try again",
        "kcov_open";
    Open, EMFILE => DescriptorOutOfLimits:
        "close descriptors, or raise the limit on open files",
        "alloc_fd (fs/file.c), beyond RLIMIT_NOFILE";
    StartThread, EAGAIN => ThreadOutOfLimits:
        "end threads, or raise the limit on processes or the container's on pids",
        "copy_process (kernel/fork.c), RLIMIT_NPROC and pids.max";
    SetSize, EINVAL => SizeOutOfLimits:
        "choose a size within `BufferSize::limits`",
        "kcov_ioctl, KCOV_INIT_TRACE";
    SetSize, ENOMEM => OutOfMemory:
        "choose a smaller size: the buffer is unswappable kernel memory",
        "kcov_ioctl, KCOV_INIT_TRACE, vmalloc_user";
    SetSize, EBUSY => AlreadySized:
        "open the device again: a descriptor's buffer is sized once",
        "kcov_ioctl, KCOV_INIT_TRACE";
    // Another file of debugfs.
    SetSize, ENOTTY => NotKcov:
        "check the path: the file is not a kcov device",
        "VFS; the driver always knows the request";
    Map, ENOMEM => OutOfMemory:
        "choose a smaller size or raise the limit on address space",
        "kcov_mmap and mm/mmap.c";
    Map, EEXIST => AddressInUse:
        "choose an address that is free, or leave the choice to the kernel",
        "this crate, because a fixed mapping would replace what is there";
    MoveDescriptor, EINVAL => DescriptorOutOfLimits:
        "choose a smaller number, or raise the limit on open files",
        "f_dupfd (fs/file.c), beyond RLIMIT_NOFILE";
    MoveDescriptor, EMFILE => DescriptorOutOfLimits:
        "close descriptors, or raise the limit on open files",
        "alloc_fd (fs/file.c)";
    MoveDescriptor, EEXIST => DescriptorInUse:
        "choose another number, or close the file that has it",
        "this crate, because dup2 would close that file";
    Check, EFAULT => BufferLost:
        "abandon the device and open another one",
        "copy_from_user (lib/usercopy.c), of a page that is not mapped or was truncated";
    Check, EMFILE => DescriptorOutOfLimits:
        "close descriptors, or raise the limit on open files",
        "alloc_fd (fs/file.c), for a pipe";
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
    #[cfg(feature = "proposed")]
    Enable, EOPNOTSUPP => ModeNotBuiltIn:
        "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        "kcov_get_mode, KCOV_TRACE_UNIQ_CMP, proposed";
    #[cfg(feature = "proposed")]
    EnableUnique, EINVAL => AlreadyEnabled:
        "this device is already enabled: disable it first",
        "KCOV_UNIQUE_ENABLE, proposed, mode not KCOV_MODE_INIT";
    #[cfg(feature = "proposed")]
    EnableUnique, EBUSY => AlreadyEnabled:
        "this thread is traced through another descriptor: disable that one first, or enable this \
         one in another thread",
        "KCOV_UNIQUE_ENABLE, proposed, t->kcov";
    #[cfg(feature = "proposed")]
    EnableUnique, ENOTSUPP => ModeNotBuiltIn:
        "build the kernel with CONFIG_KCOV_UNIQUE=y",
        "KCOV_UNIQUE_ENABLE, proposed, ENOTSUPP";
    #[cfg(feature = "proposed")]
    EnableUnique, ENOTTY => ModeNotSupported:
        "use a mode that this kernel supports",
        "kcov_ioctl_locked, request unknown";
    #[cfg(feature = "proposed")]
    ResetTrace, EINVAL => NotEnabled:
        "reset on the thread that enabled",
        "KCOV_RESET_TRACE, proposed";
    Disable, EINVAL => NotEnabled:
        "disable on the thread that enabled; a forked child inherits the descriptor but is not \
         traced",
        "kcov_ioctl_locked, KCOV_DISABLE";
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
    EnableRemote, ENOMEM => OutOfMemory:
        "free memory and try again",
        "kcov_remote_add and memdup_user";
];
