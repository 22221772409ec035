//! NetBSD: requests by pointer, and the driver's error paths.

use super::netbsd_errors as errors;
use super::{Device, raw};
use crate::buffer::Width;
use crate::error::ErrorKind;
use crate::mode::AnyMode;
use crate::pc::Recorded;
use crate::remote::linux::MAX_HANDLES;
use kcov_sys::linux::kcov_remote_arg;
use kcov_sys::netbsd::{
    KCOV_BUF_MAX_ENTRIES, KCOV_BUF_MIN_ENTRIES, KCOV_IOC_DISABLE, KCOV_IOC_ENABLE,
    KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH, KCOV_IOC_SETBUFSIZE, KCOV_MODE_NONE,
    KCOV_MODE_TRACE_CMP, KCOV_MODE_TRACE_PC, kcov_ioc_remote_attach,
};
use rustix::io::Errno;
use rustix::ioctl::{NoArg, Setter, ioctl};
use std::ffi::c_int;
use std::path::Path;

pub(crate) use errors::ERRORS;
pub(crate) use kcov_sys::netbsd::KCOV_PATH as DEFAULT_PATH;

/// The driver stores the return address as it is.
pub(crate) const RECORDED: Recorded = Recorded::Running;

/// Entries are 64 bits on every architecture.
pub(crate) const WIDTHS: &[Width] = &[Width::W64];

/// Never said: there is one width.
pub(crate) const WRONG_WIDTH: i32 = 0;

/// Least and greatest buffer size in words.
pub(crate) fn limits(_: Width) -> (u64, u64) {
    (KCOV_BUF_MIN_ENTRIES, KCOV_BUF_MAX_ENTRIES)
}

pub(crate) fn set_size(device: &Device, _: Width, words: u64) -> Result<(), i32> {
    // SAFETY: the request reads one `u64`, which is what the setter points it to.
    let request = unsafe { Setter::<{ KCOV_IOC_SETBUFSIZE as _ }, u64>::new(words) };
    // SAFETY: the request reads nothing else and writes nothing.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// The system's number of the mode, if it has one.
pub(crate) fn number(mode: AnyMode) -> Option<u32> {
    Some(match mode {
        AnyMode::TraceNone => KCOV_MODE_NONE,
        AnyMode::TracePc => KCOV_MODE_TRACE_PC,
        AnyMode::TraceCmp => KCOV_MODE_TRACE_CMP,
        AnyMode::TracePcExt(_) | AnyMode::UniqPc(_) | AnyMode::UniqCmp(_) => return None,
    } as u32)
}

pub(crate) fn enable(device: &Device, mode: u32) -> Result<(), i32> {
    // SAFETY: the request reads one `int`, which is what the setter points it to.
    let request = unsafe { Setter::<{ KCOV_IOC_ENABLE as _ }, c_int>::new(mode as c_int) };
    // SAFETY: from here on the kernel writes to the mapped buffer, which is only accessed
    // atomically.
    unsafe { ioctl(device, request) }.map_err(raw)
}

pub(crate) fn disable(device: &Device) -> Result<(), i32> {
    // SAFETY: the request takes no argument.
    let request = unsafe { NoArg::<{ KCOV_IOC_DISABLE as _ }>::new() };
    // SAFETY: the request touches no memory of this process.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// The errno for an argument that makes no sense.
pub(crate) const INVALID: i32 = Errno::INVAL.raw_os_error();

/// Whether [`enable_remote`] exists.
pub(crate) const HAS_REMOTE_HANDLES: bool = false;

/// NetBSD attaches a descriptor to a source instead.
pub(crate) fn enable_remote(_: &Device, _: &kcov_remote_arg<MAX_HANDLES>) -> Result<(), i32> {
    Err(raw(Errno::INVAL))
}

/// Whether what is proposed for Linux can be asked for.
pub(crate) const HAS_PROPOSALS: bool = false;

pub(crate) fn enable_unique(_: &Device, _: usize) -> Result<(), i32> {
    Err(INVALID)
}

pub(crate) fn reset_trace(_: &Device) -> Result<(), i32> {
    Err(INVALID)
}

/// Whether [`attach`] exists, in the newest release at least.
pub(crate) const HAS_SOURCES: bool = true;

pub(crate) fn attach(device: &Device, source: kcov_ioc_remote_attach) -> Result<(), i32> {
    // SAFETY: the request reads one such structure, which is what the setter points it to.
    let request =
        unsafe { Setter::<{ KCOV_IOC_REMOTE_ATTACH as _ }, kcov_ioc_remote_attach>::new(source) };
    // SAFETY: the request reads nothing else and writes nothing.
    unsafe { ioctl(device, request) }.map_err(raw)
}

pub(crate) fn detach(device: &Device) -> Result<(), i32> {
    // SAFETY: the request takes no argument.
    let request = unsafe { NoArg::<{ KCOV_IOC_REMOTE_DETACH as _ }>::new() };
    // SAFETY: the request touches no memory of this process.
    unsafe { ioctl(device, request) }.map_err(raw)
}

/// What a failure to open the device at `path` means, where the errno alone does not tell.
pub(crate) fn explain_open(_: &Path, _: i32) -> Option<ErrorKind> {
    None
}

const _: () = {
    assert!(errors::ENOENT == Errno::NOENT.raw_os_error());
    assert!(errors::ENXIO == Errno::NXIO.raw_os_error());
    assert!(errors::ENOMEM == Errno::NOMEM.raw_os_error());
    assert!(errors::EACCES == Errno::ACCESS.raw_os_error());
    assert!(errors::EBUSY == Errno::BUSY.raw_os_error());
    assert!(errors::EEXIST == Errno::EXIST.raw_os_error());
    assert!(errors::ENODEV == Errno::NODEV.raw_os_error());
    assert!(errors::EINVAL == Errno::INVAL.raw_os_error());
    assert!(errors::EMFILE == Errno::MFILE.raw_os_error());
    assert!(errors::ENOTTY == Errno::NOTTY.raw_os_error());
    assert!(errors::EOPNOTSUPP == Errno::OPNOTSUPP.raw_os_error());
    assert!(errors::ENOBUFS == Errno::NOBUFS.raw_os_error());
};
