//! Linux: requests, and information from debugfs and /proc.

use super::Request;
use super::unix::{File, ioctl, raw};
use crate::error::ErrorKind;
use crate::error::linux::ENOENT;
use crate::system::{LINUX, System};
use rustix::fs::{FileType, Mode, OFlags, fstat, fstatfs};
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

/// Makes a request.
pub(crate) fn request(file: &File, request: Request<'_>) -> Result<(), i32> {
    let (number, argument) = request.on_linux()?;
    // SAFETY: the file is kcov, or `File::open` found a regular file of debugfs. A device is sized
    // before it gets any other request, and drivers of other files there do not know that number.
    // The callers of `path_unchecked` and `adopt` ensure that theirs are kcov. Its requests take a
    // number, except for `KCOV_REMOTE_ENABLE`, which reads the argument's head and as many handles
    // as that says; `Remote::argument` keeps them within the argument. The driver then writes to
    // the mapped buffer, which this crate accesses atomically, and to no other memory of this
    // process.
    unsafe { ioctl(file, number, argument) }
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
    let directory = path.parent().unwrap_or(path);
    let here = directory.as_os_str().is_empty();
    let directory = if here { Path::new(".") } else { directory };
    let directory = rustix::fs::open(directory, OFlags::PATH | OFlags::CLOEXEC, Mode::empty());
    let on_debugfs = directory.is_ok_and(is_on_debugfs);
    Some(if on_debugfs { ErrorKind::NotBuiltIn } else { ErrorKind::DebugfsNotMounted })
}
