//! NetBSD: requests by pointer.

use super::unix::{File, raw};
use crate::buffer::Width;
use crate::error::ErrorKind;
use crate::error::netbsd as errors;
use crate::error::netbsd::EINVAL;
use crate::remote::linux::Argument;
use crate::system::{NETBSD, System};
use kcov_sys::netbsd::{
    KCOV_IOC_DISABLE, KCOV_IOC_ENABLE, KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH,
    KCOV_IOC_SETBUFSIZE, KCOV_MAJOR, kcov_ioc_remote_attach,
};
use rustix::fs::{FileType, major, stat};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Setter, ioctl};
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
        _ => Err(std::io::Error::last_os_error().raw_os_error().unwrap_or(0)),
    }
}

unsafe extern "C" {
    /// minherit(2).
    fn minherit(start: *mut c_void, bytes: usize, how: c_int) -> c_int;
}

pub(crate) fn set_size(file: &File, _: Width, words: u64) -> Result<(), i32> {
    // SAFETY: the request reads one `u64`, to which `Setter` points.
    let request = unsafe { Setter::<{ KCOV_IOC_SETBUFSIZE as _ }, u64>::new(words) };
    // SAFETY: the request accesses no other memory.
    unsafe { ioctl(file, request) }.map_err(raw)
}

pub(crate) fn enable(file: &File, mode: u32) -> Result<(), i32> {
    // SAFETY: the request reads one `int`, to which `Setter` points.
    let request = unsafe { Setter::<{ KCOV_IOC_ENABLE as _ }, c_int>::new(mode as c_int) };
    // SAFETY: the kernel then writes to the mapped buffer, which this crate accesses atomically.
    unsafe { ioctl(file, request) }.map_err(raw)
}

pub(crate) fn disable(file: &File) -> Result<(), i32> {
    // SAFETY: the request takes no argument.
    let request = unsafe { NoArg::<{ KCOV_IOC_DISABLE as _ }>::new() };
    // SAFETY: the request touches no memory of this process.
    unsafe { ioctl(file, request) }.map_err(raw)
}

/// Never called: NetBSD has no handles.
pub(crate) fn enable_remote(_: &File, _: &Argument) -> Result<(), i32> {
    Err(EINVAL)
}

#[cfg(feature = "proposed")]
pub(crate) fn enable_unique(_: &File, _: usize) -> Result<(), i32> {
    Err(EINVAL)
}

#[cfg(feature = "proposed")]
pub(crate) fn reset_trace(_: &File) -> Result<(), i32> {
    Err(EINVAL)
}

pub(crate) fn attach(file: &File, source: kcov_ioc_remote_attach) -> Result<(), i32> {
    // SAFETY: the request reads one such structure, to which `Setter` points.
    let request =
        unsafe { Setter::<{ KCOV_IOC_REMOTE_ATTACH as _ }, kcov_ioc_remote_attach>::new(source) };
    // SAFETY: the request accesses no other memory.
    unsafe { ioctl(file, request) }.map_err(raw)
}

pub(crate) fn detach(file: &File) -> Result<(), i32> {
    // SAFETY: the request takes no argument.
    let request = unsafe { NoArg::<{ KCOV_IOC_REMOTE_DETACH as _ }>::new() };
    // SAFETY: the request touches no memory of this process.
    unsafe { ioctl(file, request) }.map_err(raw)
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
