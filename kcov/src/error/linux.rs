//! What the errors of Linux's driver mean. Numbers are those of the architectures that have kcov, so
//! that the table can be read, and is tested, on every system.
//!
//! Sources name functions of `kernel/kcov.c` of Linux 7.3, or the file that refuses before the driver
//! is asked.

use super::{ErrorKind, Operation, Row};
pub(crate) use kcov_sys::linux::ENOTSUPP;

// `include/uapi/asm-generic/errno-base.h`, which all architectures share.
pub(crate) const EPERM: i32 = 1;
pub(crate) const ENOENT: i32 = 2;
pub(crate) const ENOMEM: i32 = 12;
pub(crate) const EACCES: i32 = 13;
pub(crate) const EBUSY: i32 = 16;
pub(crate) const EEXIST: i32 = 17;
pub(crate) const EINVAL: i32 = 22;
pub(crate) const EMFILE: i32 = 24;
pub(crate) const ENOTTY: i32 = 25;
#[cfg(feature = "pkeys")]
const ENOSPC: i32 = 28;
// `include/uapi/asm-generic/errno.h`; MIPS has others, and nothing that these rows are about.
#[cfg(feature = "pkeys")]
const ENOSYS: i32 = 38;
#[cfg(feature = "proposed")]
const EOPNOTSUPP: i32 = 95;

/// What the driver's errors mean. Lines name functions of `kernel/kcov.c` of Linux 7.3, or the
/// file that refuses before the driver is asked.
pub(crate) const ERRORS: &[Row] = &[
    Row {
        operation: Operation::Open,
        errno: ENOENT,
        kind: ErrorKind::NotBuiltIn,
        help: "build the kernel with CONFIG_KCOV=y and CONFIG_DEBUG_FS=y",
        source: "no debugfs file without CONFIG_KCOV (kcov_init)",
    },
    Row {
        operation: Operation::Open,
        errno: EACCES,
        kind: ErrorKind::PermissionDenied,
        help: "run as root: debugfs and the file kcov are root's by default; in a container, \
               bind-mount the file and give access to it",
        source: "debugfs root 0700, file 0600 (fs/debugfs/inode.c, kcov_init)",
    },
    Row {
        operation: Operation::Open,
        errno: EPERM,
        kind: ErrorKind::LockedDown,
        help: "boot without kernel lockdown (see /sys/kernel/security/lockdown): it closes every \
               debugfs file that has ioctls",
        source: "LOCKDOWN_DEBUGFS (fs/debugfs/file.c, debugfs_locked_down)",
    },
    Row {
        operation: Operation::Open,
        errno: ENOMEM,
        kind: ErrorKind::OutOfMemory,
        help: "free memory and try again",
        source: "kcov_open",
    },
    Row {
        operation: Operation::SetSize,
        errno: EINVAL,
        kind: ErrorKind::SizeOutOfLimits,
        help: "choose a size within `BufferSize::limits`",
        source: "kcov_ioctl, KCOV_INIT_TRACE",
    },
    Row {
        operation: Operation::SetSize,
        errno: ENOMEM,
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size: the buffer is unswappable kernel memory",
        source: "kcov_ioctl, KCOV_INIT_TRACE, vmalloc_user",
    },
    Row {
        operation: Operation::SetSize,
        errno: EBUSY,
        kind: ErrorKind::AlreadySized,
        help: "open the device again: a descriptor's buffer is sized once",
        source: "kcov_ioctl, KCOV_INIT_TRACE",
    },
    // Debugfs has other files.
    Row {
        operation: Operation::SetSize,
        errno: ENOTTY,
        kind: ErrorKind::NotKcov,
        help: "check the path: the file is not a kcov device",
        source: "VFS; the driver always knows the request",
    },
    Row {
        operation: Operation::Map,
        errno: ENOMEM,
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size or raise the limit on address space",
        source: "kcov_mmap and mm/mmap.c",
    },
    Row {
        operation: Operation::MoveDescriptor,
        errno: EINVAL,
        kind: ErrorKind::DescriptorOutOfLimits,
        help: "choose a smaller number, or raise the limit on open files",
        source: "f_dupfd (fs/file.c), beyond RLIMIT_NOFILE",
    },
    Row {
        operation: Operation::MoveDescriptor,
        errno: EMFILE,
        kind: ErrorKind::DescriptorOutOfLimits,
        help: "close descriptors, or raise the limit on open files",
        source: "alloc_fd (fs/file.c)",
    },
    #[cfg(feature = "pkeys")]
    Row {
        operation: Operation::AllocateKey,
        errno: ENOSYS,
        kind: ErrorKind::NoProtectionKeys,
        help: "build the kernel with CONFIG_X86_INTEL_MEMORY_PROTECTION_KEYS=y, or use \
               `Builder::write_protected`, which needs none",
        source: "kernel/sys_ni.c",
    },
    #[cfg(feature = "pkeys")]
    Row {
        operation: Operation::AllocateKey,
        errno: EINVAL,
        kind: ErrorKind::NoProtectionKeys,
        help: "run on a processor that has them, or use `Builder::write_protected`, which needs none",
        source: "arch_set_user_pkey_access (arch/x86/kernel/fpu/xstate.c), reached where mm_pkey_alloc \
                 does not ask whether there are keys, as of 6.1.172",
    },
    #[cfg(feature = "pkeys")]
    Row {
        operation: Operation::AllocateKey,
        errno: ENOSPC,
        kind: ErrorKind::ProtectionKeysInUse,
        help: "drop another device that has one, or use `Builder::write_protected`, which needs none",
        source: "mm_pkey_alloc (arch/x86/include/asm/pkeys.h); without keys too, which the processor \
                 tells apart",
    },
    Row {
        operation: Operation::Enable,
        errno: EINVAL,
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already, by this thread or another one: disable it there \
               first, or open one device for each thread",
        source: "kcov_ioctl_locked, KCOV_ENABLE, mode not KCOV_MODE_INIT",
    },
    Row {
        operation: Operation::Enable,
        errno: EBUSY,
        kind: ErrorKind::AlreadyEnabled,
        help: "this thread is traced through another descriptor: disable that one first, or \
               enable this one in another thread",
        source: "kcov_ioctl_locked, KCOV_ENABLE, t->kcov",
    },
    Row {
        operation: Operation::Enable,
        errno: ENOTSUPP,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        source: "kcov_get_mode, ENOTSUPP (524, a number internal to the kernel)",
    },
    #[cfg(feature = "proposed")]
    Row {
        operation: Operation::Enable,
        errno: EOPNOTSUPP,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        source: "kcov_get_mode, KCOV_TRACE_UNIQ_CMP, proposed",
    },
    #[cfg(feature = "proposed")]
    Row {
        operation: Operation::EnableUnique,
        errno: EINVAL,
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already: disable it first",
        source: "KCOV_UNIQUE_ENABLE, proposed, mode not KCOV_MODE_INIT",
    },
    #[cfg(feature = "proposed")]
    Row {
        operation: Operation::EnableUnique,
        errno: EBUSY,
        kind: ErrorKind::AlreadyEnabled,
        help: "this thread is traced through another descriptor: disable that one first, or \
               enable this one in another thread",
        source: "KCOV_UNIQUE_ENABLE, proposed, t->kcov",
    },
    #[cfg(feature = "proposed")]
    Row {
        operation: Operation::EnableUnique,
        errno: ENOTSUPP,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "build the kernel with CONFIG_KCOV_UNIQUE=y",
        source: "KCOV_UNIQUE_ENABLE, proposed, ENOTSUPP",
    },
    #[cfg(feature = "proposed")]
    Row {
        operation: Operation::EnableUnique,
        errno: ENOTTY,
        kind: ErrorKind::ModeNotSupported,
        help: "use a mode that this kernel has",
        source: "kcov_ioctl_locked, request unknown",
    },
    #[cfg(feature = "proposed")]
    Row {
        operation: Operation::ResetTrace,
        errno: EINVAL,
        kind: ErrorKind::NotEnabled,
        help: "reset in the thread that enabled",
        source: "KCOV_RESET_TRACE, proposed",
    },
    Row {
        operation: Operation::Disable,
        errno: EINVAL,
        kind: ErrorKind::NotEnabled,
        help: "disable in the thread that enabled; a forked child inherits the descriptor but is \
               not traced",
        source: "kcov_ioctl_locked, KCOV_DISABLE",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: EINVAL,
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already: disable it first",
        source: "kcov_ioctl_locked, KCOV_REMOTE_ENABLE, mode not KCOV_MODE_INIT; kcov_check_handle, \
                 where a handle explains it",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: EBUSY,
        kind: ErrorKind::AlreadyEnabled,
        help: "this thread has a remote session already, or, before Linux 7.2, any session: enable \
               remote coverage in a helper thread",
        source: "kcov_ioctl_locked, KCOV_REMOTE_ENABLE, t->kcov_remote",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: EEXIST,
        kind: ErrorKind::HandleInUse,
        help: "choose another common handle, or wait until the device that collects from this \
               handle is disabled",
        source: "kcov_remote_add",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: ENOTSUPP,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        source: "kcov_get_mode, ENOTSUPP (524, a number internal to the kernel)",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: ENOMEM,
        kind: ErrorKind::OutOfMemory,
        help: "free memory and try again",
        source: "kcov_remote_add and memdup_user",
    },
    Row {
        operation: Operation::ReadSymbols,
        errno: EPERM,
        kind: ErrorKind::PermissionDenied,
        help: "give the process CAP_SYSLOG and kernel.kptr_restrict a value below 2",
        source: "all addresses are 0 (kernel/kallsyms.c, kallsyms_show_value)",
    },
    Row {
        operation: Operation::ReadSymbols,
        errno: ENOENT,
        kind: ErrorKind::Unsupported,
        help: "mount /proc, or build the kernel with CONFIG_KALLSYMS=y",
        source: "no file without CONFIG_KALLSYMS",
    },
];
