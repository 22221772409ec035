//! Linux: requests by value, and information from debugfs and /proc.

use super::unix::{File, raw};
use crate::buffer::Width;
use crate::error::ErrorKind;
use crate::error::linux::{EINVAL, ENOENT};
use crate::remote::linux::Argument;
use crate::system::{LINUX, System};
#[cfg(feature = "proposed")]
use kcov_sys::linux::proposed::{KCOV_RESET_TRACE, KCOV_UNIQUE_ENABLE};
use kcov_sys::linux::{
    KCOV_DISABLE, KCOV_ENABLE, KCOV_INIT_TRACE32, KCOV_INIT_TRACE64, KCOV_REMOTE_ENABLE,
};
use kcov_sys::netbsd::kcov_ioc_remote_attach;
use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs};
use rustix::ioctl::{IntegerSetter, Opcode, Setter, ioctl};
use rustix::mm::{Advice, madvise};
use std::ffi::c_void;
use std::os::fd::AsFd;
use std::path::Path;

pub(crate) use kcov_sys::linux::KCOV_PATH as DEFAULT_PATH;

pub(crate) const SYSTEM: &System = &LINUX;

/// `f_type` of debugfs (`include/uapi/linux/magic.h`).
const DEBUGFS_MAGIC: u32 = 0x6462_6720;

fn is_on_debugfs(file: impl AsFd) -> bool {
    fstatfs(file).is_ok_and(|statfs| statfs.f_type as u32 == DEBUGFS_MAGIC)
}

/// Whether a file may receive kcov's requests: a regular file of debugfs. Other files may treat the
/// integer argument of a request as a pointer.
pub(crate) fn is_kcov(_: &Path, file: &File) -> bool {
    let is_file =
        |stat: rustix::fs::Stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    is_on_debugfs(file) && fstat(file).is_ok_and(is_file)
}

/// Takes pages out of the memory of future children.
///
/// # Safety
///
/// The pages must be the caller's, and no child may use them.
pub(super) unsafe fn keep_from_children(start: *mut c_void, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller keeps children from using the pages.
    unsafe { madvise(start, bytes, Advice::LinuxDontFork) }.map_err(raw)
}

/// Fills private pages with zeros in future children.
///
/// # Safety
///
/// The pages must be the caller's, and it must expect zeros in children.
pub(super) unsafe fn zero_in_children(start: *mut c_void, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller expects zeros.
    unsafe { madvise(start, bytes, Advice::LinuxWipeOnFork) }.map_err(raw)
}

/// Issues a request with an argument by value.
///
/// # Safety
///
/// The caller must ensure that `REQUEST` takes a number, no pointer, and that the file is kcov.
unsafe fn request<const REQUEST: Opcode>(file: &File, argument: usize) -> Result<(), i32> {
    // SAFETY: the caller ensures that the request takes a number.
    let request = unsafe { IntegerSetter::<REQUEST>::new_usize(argument) };
    // SAFETY: the driver touches no memory of this process except the mapped buffer, which this
    // crate accesses atomically.
    unsafe { ioctl(file, request) }.map_err(raw)
}

pub(crate) fn set_size(file: &File, width: Width, words: u64) -> Result<(), i32> {
    let words = usize::try_from(words).map_err(|_| EINVAL)?;
    match width {
        // SAFETY: takes a number of words; `File::open` checked that the file is kcov, or the
        // caller of `path_unchecked` or `adopt` ensured it.
        Width::W64 => unsafe { request::<{ KCOV_INIT_TRACE64 as _ }>(file, words) },
        // SAFETY: takes a number of words; the file is kcov, see above.
        Width::W32 => unsafe { request::<{ KCOV_INIT_TRACE32 as _ }>(file, words) },
    }
}

pub(crate) fn enable(file: &File, mode: u32) -> Result<(), i32> {
    // SAFETY: takes a mode number; the file is kcov, see `set_size`.
    unsafe { request::<{ KCOV_ENABLE as _ }>(file, mode as usize) }
}

pub(crate) fn disable(file: &File) -> Result<(), i32> {
    // SAFETY: takes a number, 0; the file is kcov, see `set_size`.
    unsafe { request::<{ KCOV_DISABLE as _ }>(file, 0) }
}

pub(crate) fn enable_remote(file: &File, argument: &Argument) -> Result<(), i32> {
    // SAFETY: the request reads the head of the argument and as many handles as the head says;
    // `Remote::argument` keeps that number within the array.
    let request = unsafe { Setter::<{ KCOV_REMOTE_ENABLE as _ }, Argument>::new(*argument) };
    // SAFETY: the kernel then writes to the mapped buffer, which this crate accesses atomically.
    unsafe { ioctl(file, request) }.map_err(raw)
}

#[cfg(feature = "proposed")]
pub(crate) fn enable_unique(file: &File, bitmap_words: usize) -> Result<(), i32> {
    // SAFETY: takes a number of words; the file is kcov, see `set_size`.
    unsafe { request::<{ KCOV_UNIQUE_ENABLE as _ }>(file, bitmap_words) }
}

#[cfg(feature = "proposed")]
pub(crate) fn reset_trace(file: &File) -> Result<(), i32> {
    // SAFETY: takes a number, 0; the file is kcov, see `set_size`.
    unsafe { request::<{ KCOV_RESET_TRACE as _ }>(file, 0) }
}

/// Never called: Linux has no sources.
pub(crate) fn attach(_: &File, _: kcov_ioc_remote_attach) -> Result<(), i32> {
    Err(EINVAL)
}

pub(crate) fn detach(_: &File) -> Result<(), i32> {
    Err(EINVAL)
}

/// Whether the kernel is User-Mode Linux: its processors say so.
pub(crate) fn is_user_mode_linux() -> bool {
    let processors = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    processors
        .lines()
        .any(|line| line.starts_with("vendor_id") && line.ends_with("User Mode Linux"))
}

/// Explains why `path` could not be opened, if the errno alone is ambiguous.
pub(crate) fn explain_open(path: &Path, errno: i32) -> Option<ErrorKind> {
    if errno != ENOENT {
        return None;
    }
    // The mount point exists even without the mount, so check the directory's file system. If that
    // fails, assume that debugfs is missing.
    let directory = path.parent()?;
    let here = directory.as_os_str().is_empty();
    let directory = if here { Path::new(".") } else { directory };
    let directory = rustix::fs::open(directory, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let on_debugfs = directory.is_ok_and(is_on_debugfs);
    Some(if on_debugfs { ErrorKind::NotBuiltIn } else { ErrorKind::DebugfsNotMounted })
}
