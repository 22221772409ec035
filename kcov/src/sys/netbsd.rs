//! NetBSD: requests.

use super::Request;
use super::unix::{File, ioctl, last_errno};
use crate::error::ErrorKind;
use crate::error::netbsd as errors;
use crate::system::{NETBSD, System};
use kcov_sys::netbsd::KCOV_MAJOR;
use rustix::fs::{FileType, major, stat};
use rustix::io::Errno;
use std::ffi::{c_int, c_void};
use std::path::Path;

pub(crate) use kcov_sys::netbsd::KCOV_PATH as DEFAULT_PATH;

pub(crate) const SYSTEM: &System = &NETBSD;

/// Whether a file may receive kcov's requests. The descriptor of a cloned device does not identify
/// it, so this checks the node.
pub(crate) fn is_kcov(path: &Path, _: &File) -> bool {
    stat(path).is_ok_and(|stat| {
        let is_device = FileType::from_raw_mode(stat.st_mode) == FileType::CharacterDevice;
        is_device && major(stat.st_rdev) == KCOV_MAJOR
    })
}

/// Takes pages out of the memory of future children.
///
/// # Safety
///
/// The pages must be the caller's, and no child may use them.
pub(super) unsafe fn keep_from_children(start: *mut c_void, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller keeps children from using the pages.
    unsafe { inherit(start, bytes, libc::MAP_INHERIT_NONE) }
}

/// Fills private pages with zeros in future children.
///
/// # Safety
///
/// The pages must be the caller's, and it must expect zeros in children.
pub(super) unsafe fn zero_in_children(start: *mut c_void, bytes: usize) -> Result<(), i32> {
    // SAFETY: the caller expects zeros.
    unsafe { inherit(start, bytes, libc::MAP_INHERIT_ZERO) }
}

/// # Safety
///
/// The pages must be the caller's, and it must expect the effect in children.
unsafe fn inherit(start: *mut c_void, bytes: usize, how: c_int) -> Result<(), i32> {
    // SAFETY: the call changes only what children inherit, which the caller expects.
    match unsafe { minherit(start, bytes, how) } {
        0 => Ok(()),
        _ => Err(last_errno()),
    }
}

unsafe extern "C" {
    /// minherit(2).
    fn minherit(start: *mut c_void, bytes: usize, how: c_int) -> c_int;
}

/// Makes a request.
pub(crate) fn request(file: &File, request: Request<'_>) -> Result<(), i32> {
    let (number, argument) = request.on_netbsd()?;
    // SAFETY: `File::open` checked that the path leads to kcov, or the caller of `path_unchecked` or
    // `adopt` ensured it. The kernel copies as many bytes as the request's number says: the size of
    // what the pointer points to. The driver then writes to the mapped buffer, which this crate
    // accesses atomically, and to no other memory of this process.
    unsafe { ioctl(file, number, argument) }
}

pub(crate) fn is_user_mode_linux() -> bool {
    false
}

/// The errno is unambiguous.
pub(crate) fn explain_open(_: &Path, _: i32) -> Option<ErrorKind> {
    None
}

macro_rules! same {
    ($($ours:ident $theirs:ident,)*) => {
        const _: () = {
            $(assert!(errors::$ours == Errno::$theirs.raw_os_error());)*
        };
    };
}
same! {
    ENOENT NOENT, ENXIO NXIO, ENOMEM NOMEM, EACCES ACCESS, EFAULT FAULT, EBUSY BUSY, EEXIST EXIST, ENODEV NODEV,
    EINVAL INVAL, EMFILE MFILE, ENOTTY NOTTY, EOPNOTSUPP OPNOTSUPP, ENOBUFS NOBUFS,
}
