//! Linux: requests by value, and the driver's error paths.

use super::{Device, raw};
use crate::buffer::Width;
use crate::error::{ErrorKind, Operation, Row};
use crate::mode::AnyMode;
use crate::pc::Recorded;
use crate::remote::linux::MAX_HANDLES;
use kcov_sys::linux::proposed::{
    KCOV_RESET_TRACE, KCOV_TRACE_PC_EXT, KCOV_TRACE_UNIQ_CMP, KCOV_TRACE_UNIQ_PC,
    KCOV_UNIQUE_ENABLE,
};
use kcov_sys::linux::{
    ENOTSUPP, KCOV_DISABLE, KCOV_ENABLE, KCOV_INIT_TRACE_MIN, KCOV_INIT_TRACE32, KCOV_INIT_TRACE64,
    KCOV_REMOTE_ENABLE, KCOV_TRACE_CMP, KCOV_TRACE_PC, kcov_init_trace_max, kcov_remote_arg,
};
use kcov_sys::netbsd::kcov_ioc_remote_attach;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl};
use std::path::Path;

pub(crate) use kcov_sys::linux::KCOV_PATH as DEFAULT_PATH;

/// `f_type` of debugfs (`include/uapi/linux/magic.h`).
const DEBUGFS_MAGIC: u32 = 0x6462_6720;

/// `canonicalize_ip` subtracts the offset.
pub(crate) const RECORDED: Recorded = Recorded::Linked;

/// The words that the kernel may use, in the order to try them: a 32-bit program may run under a
/// 64-bit kernel, which knows only its own [`KCOV_INIT_TRACE64`].
pub(crate) const WIDTHS: &[Width] =
    if size_of::<usize>() == 8 { &[Width::W64] } else { &[Width::W64, Width::W32] };

/// The errno that tells that the width is not the kernel's.
pub(crate) const WRONG_WIDTH: i32 = Errno::NOTTY.raw_os_error();

/// Least and greatest buffer size in words.
pub(crate) fn limits(width: Width) -> (u64, u64) {
    (KCOV_INIT_TRACE_MIN, kcov_init_trace_max(width.bytes() as u64))
}

pub(crate) fn set_size(device: &Device, width: Width, words: u64) -> Result<(), i32> {
    let words = usize::try_from(words).map_err(|_| raw(Errno::INVAL))?;
    match width {
        // SAFETY: the argument is a number of words.
        Width::W64 => unsafe { request::<{ KCOV_INIT_TRACE64 as _ }>(device, words) },
        // SAFETY: as above.
        Width::W32 => unsafe { request::<{ KCOV_INIT_TRACE32 as _ }>(device, words) },
    }
}

/// Issues a request whose argument is passed by value.
///
/// # Safety
///
/// `REQUEST` takes a number and no pointer.
unsafe fn request<const REQUEST: Opcode>(device: &Device, argument: usize) -> Result<(), i32> {
    // SAFETY: the argument is a number, by the caller's duty.
    let request = unsafe { IntegerSetter::<REQUEST>::new_usize(argument) };
    // SAFETY: the request touches no memory of this process but the mapped buffer, which is only
    // accessed atomically.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// The system's number of the mode, if it has one.
pub(crate) fn number(mode: AnyMode) -> Option<u32> {
    match mode {
        AnyMode::TraceNone => None,
        AnyMode::TracePc => Some(KCOV_TRACE_PC),
        AnyMode::TraceCmp => Some(KCOV_TRACE_CMP),
        AnyMode::TracePcExt(_) => Some(KCOV_TRACE_PC_EXT),
        AnyMode::UniqPc(_) => Some(KCOV_TRACE_UNIQ_PC),
        AnyMode::UniqCmp(_) => Some(KCOV_TRACE_UNIQ_CMP),
    }
}

pub(crate) fn enable(device: &Device, mode: u32) -> Result<(), i32> {
    // SAFETY: the argument is a mode.
    unsafe { request::<{ KCOV_ENABLE as _ }>(device, mode as usize) }
}

pub(crate) fn disable(device: &Device) -> Result<(), i32> {
    // SAFETY: the argument is a number that must be 0.
    unsafe { request::<{ KCOV_DISABLE as _ }>(device, 0) }
}

/// The errno for an argument that makes no sense.
pub(crate) const INVALID: i32 = Errno::INVAL.raw_os_error();

/// Whether [`enable_remote`] exists.
pub(crate) const HAS_REMOTE_HANDLES: bool = true;

pub(crate) fn enable_remote(
    device: &Device,
    argument: &kcov_remote_arg<MAX_HANDLES>,
) -> Result<(), i32> {
    // SAFETY: the request reads the head of the argument and as many handles as the head says,
    // which `Remote::argument` keeps within the array.
    let request = unsafe {
        Setter::<{ KCOV_REMOTE_ENABLE as _ }, kcov_remote_arg<MAX_HANDLES>>::new(*argument)
    };
    // SAFETY: from here on the kernel writes to the mapped buffer, which is only accessed
    // atomically.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// Whether what is proposed for Linux can be asked for.
pub(crate) const HAS_PROPOSALS: bool = true;

pub(crate) fn enable_unique(device: &Device, bitmap_words: usize) -> Result<(), i32> {
    // SAFETY: the argument is a number of words.
    unsafe { request::<{ KCOV_UNIQUE_ENABLE as _ }>(device, bitmap_words) }
}

pub(crate) fn reset_trace(device: &Device) -> Result<(), i32> {
    // SAFETY: the argument is a number that must be 0.
    unsafe { request::<{ KCOV_RESET_TRACE as _ }>(device, 0) }
}

/// Whether [`attach`] exists.
pub(crate) const HAS_SOURCES: bool = false;

/// Linux names what to collect from when it is enabled.
pub(crate) fn attach(_: &Device, _: kcov_ioc_remote_attach) -> Result<(), i32> {
    Err(INVALID)
}

pub(crate) fn detach(_: &Device) -> Result<(), i32> {
    Err(INVALID)
}

/// What a failure to open the device at `path` means, where the errno alone does not tell.
pub(crate) fn explain_open(path: &Path, errno: i32) -> Option<ErrorKind> {
    if Errno::from_raw_os_error(errno) != Errno::NOENT {
        return None;
    }
    // The mount point is there without the mount, so the directory's file system decides. Where it
    // cannot be asked, the file system is what is missing first.
    let directory = path.parent()?;
    let on_debugfs = rustix::fs::open(directory, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())
        .and_then(rustix::fs::fstatfs)
        .is_ok_and(|statfs| statfs.f_type as u32 == DEBUGFS_MAGIC);
    Some(if on_debugfs { ErrorKind::NotBuiltIn } else { ErrorKind::DebugfsNotMounted })
}

/// What the driver's errors mean. Lines name functions of `kernel/kcov.c` of Linux 7.3, or the
/// file that refuses before the driver is asked.
pub(crate) const ERRORS: &[Row] = &[
    Row {
        operation: Operation::Open,
        errno: Errno::NOENT.raw_os_error(),
        kind: ErrorKind::NotBuiltIn,
        help: "build the kernel with CONFIG_KCOV=y and CONFIG_DEBUG_FS=y",
        source: "no debugfs file without CONFIG_KCOV (kcov_init)",
    },
    Row {
        operation: Operation::Open,
        errno: Errno::ACCESS.raw_os_error(),
        kind: ErrorKind::PermissionDenied,
        help: "run as root: debugfs and the file kcov are root's by default; in a container, \
               bind-mount the file and give access to it",
        source: "debugfs root 0700, file 0600 (fs/debugfs/inode.c, kcov_init)",
    },
    Row {
        operation: Operation::Open,
        errno: Errno::PERM.raw_os_error(),
        kind: ErrorKind::LockedDown,
        help: "boot without kernel lockdown (see /sys/kernel/security/lockdown): it closes every \
               debugfs file that has ioctls",
        source: "LOCKDOWN_DEBUGFS (fs/debugfs/file.c, debugfs_locked_down)",
    },
    Row {
        operation: Operation::Open,
        errno: Errno::NOMEM.raw_os_error(),
        kind: ErrorKind::OutOfMemory,
        help: "free memory and try again",
        source: "kcov_open",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::SizeOutOfLimits,
        help: "choose a size within the limits of `kcov::limits`",
        source: "kcov_ioctl, KCOV_INIT_TRACE",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::NOMEM.raw_os_error(),
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size: the buffer is unswappable kernel memory",
        source: "kcov_ioctl, KCOV_INIT_TRACE, vmalloc_user",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::BUSY.raw_os_error(),
        kind: ErrorKind::AlreadySized,
        help: "open the device again: a descriptor's buffer is sized once",
        source: "kcov_ioctl, KCOV_INIT_TRACE",
    },
    Row {
        operation: Operation::SetSize,
        errno: Errno::NOTTY.raw_os_error(),
        kind: ErrorKind::NotKcov,
        help: "check the path: the file is not a kcov device",
        source: "VFS; the driver always knows the request",
    },
    Row {
        operation: Operation::Map,
        errno: Errno::NOMEM.raw_os_error(),
        kind: ErrorKind::OutOfMemory,
        help: "choose a smaller size or raise the limit on address space",
        source: "kcov_mmap and mm/mmap.c",
    },
    Row {
        operation: Operation::MoveDescriptor,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::DescriptorOutOfLimits,
        help: "choose a smaller number, or raise the limit on open files",
        source: "f_dupfd (fs/file.c), beyond RLIMIT_NOFILE",
    },
    Row {
        operation: Operation::MoveDescriptor,
        errno: Errno::MFILE.raw_os_error(),
        kind: ErrorKind::DescriptorOutOfLimits,
        help: "close descriptors, or raise the limit on open files",
        source: "alloc_fd (fs/file.c)",
    },
    Row {
        operation: Operation::AllocateKey,
        errno: Errno::NOSYS.raw_os_error(),
        kind: ErrorKind::NoProtectionKeys,
        help: "build the kernel with CONFIG_X86_INTEL_MEMORY_PROTECTION_KEYS=y, or use \
               `Builder::write_protected`, which needs none",
        source: "kernel/sys_ni.c",
    },
    Row {
        operation: Operation::AllocateKey,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::NoProtectionKeys,
        help: "run on a processor that has them, or use `Builder::write_protected`, which needs none",
        source: "arch_set_user_pkey_access (arch/x86/kernel/fpu/xstate.c), reached where mm_pkey_alloc \
                 does not ask whether there are keys, as of 6.1.172",
    },
    Row {
        operation: Operation::AllocateKey,
        errno: Errno::NOSPC.raw_os_error(),
        kind: ErrorKind::ProtectionKeysInUse,
        help: "drop another device that has one, or use `Builder::write_protected`, which needs none",
        source: "mm_pkey_alloc (arch/x86/include/asm/pkeys.h); without keys too, which the processor \
                 tells apart",
    },
    Row {
        operation: Operation::Enable,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already, by this thread or another one: disable it there \
               first, or open one device for each thread",
        source: "kcov_ioctl_locked, KCOV_ENABLE, mode not KCOV_MODE_INIT",
    },
    Row {
        operation: Operation::Enable,
        errno: Errno::BUSY.raw_os_error(),
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
    Row {
        operation: Operation::Enable,
        errno: Errno::OPNOTSUPP.raw_os_error(),
        kind: ErrorKind::ModeNotBuiltIn,
        help: "build the kernel with CONFIG_KCOV_ENABLE_COMPARISONS=y",
        source: "kcov_get_mode, KCOV_TRACE_UNIQ_CMP, proposed",
    },
    Row {
        operation: Operation::EnableUnique,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already: disable it first",
        source: "KCOV_UNIQUE_ENABLE, proposed, mode not KCOV_MODE_INIT",
    },
    Row {
        operation: Operation::EnableUnique,
        errno: Errno::BUSY.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "this thread is traced through another descriptor: disable that one first, or \
               enable this one in another thread",
        source: "KCOV_UNIQUE_ENABLE, proposed, t->kcov",
    },
    Row {
        operation: Operation::EnableUnique,
        errno: ENOTSUPP,
        kind: ErrorKind::ModeNotBuiltIn,
        help: "build the kernel with CONFIG_KCOV_UNIQUE=y",
        source: "KCOV_UNIQUE_ENABLE, proposed, ENOTSUPP",
    },
    Row {
        operation: Operation::EnableUnique,
        errno: Errno::NOTTY.raw_os_error(),
        kind: ErrorKind::ModeNotSupported,
        help: "use a mode that this kernel has",
        source: "kcov_ioctl_locked, request unknown",
    },
    Row {
        operation: Operation::ResetTrace,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::NotEnabled,
        help: "reset in the thread that enabled",
        source: "KCOV_RESET_TRACE, proposed",
    },
    Row {
        operation: Operation::Disable,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::NotEnabled,
        help: "disable in the thread that enabled; a forked child inherits the descriptor but is \
               not traced",
        source: "kcov_ioctl_locked, KCOV_DISABLE",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: Errno::INVAL.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "this device is enabled already: disable it first",
        source: "kcov_ioctl_locked, KCOV_REMOTE_ENABLE, mode not KCOV_MODE_INIT; kcov_check_handle, \
                 where a handle explains it",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: Errno::BUSY.raw_os_error(),
        kind: ErrorKind::AlreadyEnabled,
        help: "this thread has a remote session already, or, before Linux 7.2, any session: enable \
               remote coverage in a helper thread",
        source: "kcov_ioctl_locked, KCOV_REMOTE_ENABLE, t->kcov_remote",
    },
    Row {
        operation: Operation::EnableRemote,
        errno: Errno::EXIST.raw_os_error(),
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
        errno: Errno::NOMEM.raw_os_error(),
        kind: ErrorKind::OutOfMemory,
        help: "free memory and try again",
        source: "kcov_remote_add and memdup_user",
    },
];
