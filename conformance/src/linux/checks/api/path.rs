//! What the crate verifies before it makes a request on a file.

use crate::check::{Context, checks};
use crate::checks::api::{descriptor, open, records};
use kcov::{BufferSize, Device, Error, ErrorKind, Operation};
use std::os::fd::AsRawFd as _;
use std::path::Path;

checks! {
    "api.path.other-files-are-not-asked": other_files_are_not_asked,
    "api.path.other-files-of-debugfs-refuse": other_files_of_debugfs_refuse,
    "api.path.unchecked-path": unchecked_path,
}

fn refused(path: &Path) -> Error {
    let error = Device::builder().path(path).open().expect_err("not kcov");
    assert_eq!((error.kind(), error.path()), (ErrorKind::NotKcov, Some(path)));
    error
}

fn other_files_are_not_asked(cx: &Context) {
    let flags = nix::sys::memfd::MFdFlags::MFD_CLOEXEC;
    let of_tmpfs = nix::sys::memfd::memfd_create("not-kcov", flags).expect("a file of tmpfs");
    let of_tmpfs = format!("/proc/self/fd/{}", of_tmpfs.as_raw_fd());
    for path in [of_tmpfs.as_str(), "/dev/null", "/proc/self/comm"] {
        let error = refused(Path::new(path));
        // A request would have left its errno.
        assert_eq!((error.operation(), error.raw_os_error()), (Operation::Open, None), "{path}");
    }
    // The device opens under another name too.
    let device = open(cx, 1);
    let name = format!("/proc/self/fd/{}", descriptor(&device));
    let another = Device::builder().path(name).size(BufferSize::words(4096)).open();
    records(&mut another.expect("opened by another name"));
}

fn other_files_of_debugfs_refuse(cx: &Context) {
    // A file of the kernel's core, which has no ioctls.
    let file = cx.device().with_file_name("clear_warn_once");
    let error = refused(&file);
    let expected = (Operation::SetSize, Some(libc::ENOTTY));
    assert_eq!((error.operation(), error.raw_os_error()), expected);
}

fn unchecked_path(cx: &Context) {
    // SAFETY: the path is that of the kcov device.
    let builder = unsafe { Device::builder().path_unchecked(cx.device()) };
    records(&mut builder.size(BufferSize::words(4096)).open().expect("it opens"));
}
