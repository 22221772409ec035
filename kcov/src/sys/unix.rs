//! What Linux and NetBSD have in common: descriptors, open(2) and mmap(2).

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::ptr::{NonNull, null_mut};

pub(crate) use rustix::param::page_size;
pub(crate) use std::os::fd::OwnedFd as Device;

pub(crate) fn raw(errno: Errno) -> i32 {
    errno.raw_os_error()
}

pub(crate) fn open(path: &Path) -> Result<Device, i32> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(raw)
}

/// Makes a system call that has no effect and that an instrumented kernel cannot miss, for probing.
pub(crate) fn provoke() {
    let _ = rustix::fs::stat("/");
}

impl AsFd for crate::Device {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file().as_fd()
    }
}

/// A shared, writable mapping of a whole kcov buffer, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<c_void>,
    bytes: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread, and this type only hands out its
// address; whoever dereferences it uses atomic accesses.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of the device, shared: a private mapping of a kcov buffer
    /// stops showing what the kernel writes once user space has stored to it.
    pub(crate) fn new(device: &Device, bytes: usize) -> Result<Mapping, i32> {
        Mapping::at(device, bytes, 0)
    }

    /// Maps what follows `offset` bytes.
    pub(crate) fn at(device: &Device, bytes: usize, offset: u64) -> Result<Mapping, i32> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let address = unsafe { mmap(null_mut(), bytes, prot, MapFlags::SHARED, device, offset) };
        let address = address.map_err(raw)?;
        Ok(Mapping { address: NonNull::new(address).expect("mmap never returns null"), bytes })
    }

    /// Where the buffer starts; page-aligned, and valid for as long as `self` lives.
    pub(crate) fn address(&self) -> NonNull<u64> {
        self.address.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: `new` mapped exactly this range, nothing else unmaps it, and every view of it
        // borrows the device that owns `self`. The result is ignored: a failure leaves the
        // mapping in place, which is harmless.
        let _ = unsafe { munmap(self.address.as_ptr(), self.bytes) };
    }
}
