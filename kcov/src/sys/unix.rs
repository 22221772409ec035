//! What Linux and NetBSD have in common: descriptors, open(2) and mmap(2).

use super::Key;
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use rustix::param::page_size;
pub(crate) use std::os::fd::OwnedFd as Device;

pub(crate) fn raw(errno: Errno) -> i32 {
    errno.raw_os_error()
}

pub(crate) fn open(path: &Path) -> Result<Device, i32> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(raw)
}

/// The same open file under the first free number from `least` on, close-on-exec.
pub(crate) fn move_up(device: Device, least: i32) -> Result<Device, i32> {
    rustix::io::fcntl_dupfd_cloexec(&device, least).map_err(raw)
}

/// Device and number of an open file, or the errno for one that has none.
pub(crate) type Identity = Result<(u64, u64), i32>;

#[allow(clippy::useless_conversion, reason = "the types are others on other systems")]
pub(crate) fn identity(device: &Device) -> Identity {
    let stat = rustix::fs::fstat(device).map_err(raw)?;
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// Puts a device where another one was, whose descriptor is somebody else's by now and stays open.
pub(crate) fn put_in_place(place: &mut Device, device: Device) {
    std::mem::forget(std::mem::replace(place, device));
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

/// A shared, writable mapping of a whole kcov buffer, unmapped when dropped, and then without a key.
#[derive(Debug)]
pub(crate) struct Mapping {
    address: NonNull<c_void>,
    bytes: usize,
    /// Bytes on each side that nobody may access.
    guard: usize,
    /// What its pages bear.
    key: Option<Key>,
}

// SAFETY: the mapping belongs to the process, not to a thread, and this type only hands out its
// address; whoever dereferences it uses atomic accesses.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps the first `bytes` bytes of the device, shared: a private mapping of a kcov buffer
    /// stops showing what the kernel writes once user space has stored to it.
    pub(crate) fn new(device: &Device, bytes: usize, guard_pages: usize) -> Result<Mapping, i32> {
        if guard_pages == 0 {
            return Mapping::at(device, bytes, 0);
        }
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let guard = guard_pages.saturating_mul(page_size());
        let all = guard.saturating_mul(2).saturating_add(bytes);
        // SAFETY: as above.
        let start =
            unsafe { mmap_anonymous(null_mut(), all, ProtFlags::empty(), MapFlags::PRIVATE) };
        let start = start.map_err(raw)?;
        // SAFETY: `guard + bytes` is less than what was just mapped.
        let place = unsafe { start.byte_add(guard) };
        // From here on dropping it unmaps everything.
        let address = NonNull::new(place).expect("mmap never returns null");
        let mapping = Mapping { address, bytes, guard, key: None };
        // SAFETY: what `MAP_FIXED` replaces are pages in the middle of those just mapped, which
        // nobody knows of yet.
        unsafe { mmap(place, bytes, prot, MapFlags::SHARED | MapFlags::FIXED, device, 0) }
            .map_err(raw)?;
        Ok(mapping)
    }

    /// Maps what follows `offset` bytes.
    pub(crate) fn at(device: &Device, bytes: usize, offset: u64) -> Result<Mapping, i32> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let address = unsafe { mmap(null_mut(), bytes, prot, MapFlags::SHARED, device, offset) };
        let address = address.map_err(raw)?;
        let address = NonNull::new(address).expect("mmap never returns null");
        Ok(Mapping { address, bytes, guard: 0, key: None })
    }

    /// Lets the process write to the buffer, or only read it.
    pub(crate) fn set_writable(&self, writable: bool) -> Result<(), i32> {
        let mut flags = MprotectFlags::READ;
        flags.set(MprotectFlags::WRITE, writable);
        // SAFETY: these are the pages of the buffer, whose protection is nobody else's business.
        unsafe { mprotect(self.address.as_ptr(), self.bytes, flags) }.map_err(raw)
    }

    /// Gives the buffer a key, which goes with the mapping.
    pub(crate) fn set_key(&mut self, key: Key) -> Result<(), i32> {
        self.key = Some(key);
        self.cover(self.key())
    }

    /// Lets the buffer bear a key, which may be that of another mapping that lives longer.
    pub(crate) fn cover(&self, key: Option<&Key>) -> Result<(), i32> {
        // SAFETY: these are the pages of the buffer, which this crate writes with the right to only;
        // who reads them is told to have it.
        key.map_or(Ok(()), |key| unsafe { key.cover(self.address, self.bytes) })
    }

    /// The key that is its own.
    #[inline]
    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }

    /// Whether what is mapped is the buffer of the device, which is found out by writing to the first
    /// word of each page.
    pub(crate) fn shows(&self, device: &Device) -> Result<bool, i32> {
        // Refused where a page is not mapped at all, or may not be written to.
        if self.set_writable(true).is_err() {
            return Ok(false);
        }
        let other = Mapping::at(device, self.bytes, 0)?;
        for mark in [1, u64::MAX] {
            for page in (0..self.bytes).step_by(page_size()) {
                // SAFETY: the page is part of the mapping that was just made.
                let there = unsafe { AtomicU64::from_ptr(other.word(page)) };
                there.store(mark, Ordering::Relaxed);
                // SAFETY: all pages are mapped and may be read, as setting that went well; whatever
                // is there is only accessed atomically by this crate.
                let here = unsafe { AtomicU64::from_ptr(self.word(page)) };
                if here.load(Ordering::Relaxed) != mark {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Maps the device where it was before, over whatever is there now.
    pub(crate) fn renew(&self, device: &Device) -> Result<(), i32> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the range is that of the buffer: who mapped something else there has taken what
        // was not theirs, and no view of it exists while `self` is borrowed by nobody else.
        unsafe { mmap(self.address.as_ptr(), self.bytes, prot, flags, device, 0) }
            .map(|_| ())
            .map_err(raw)
    }

    fn word(&self, offset: usize) -> *mut u64 {
        self.address.as_ptr().wrapping_byte_add(offset).cast()
    }

    /// Where the buffer starts; page-aligned, and valid for as long as `self` lives.
    pub(crate) fn address(&self) -> NonNull<u64> {
        self.address.cast()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        let start = self.address.as_ptr().wrapping_byte_sub(self.guard);
        // SAFETY: `new` mapped exactly this range, nothing else unmaps it, and every view of it
        // borrows the device that owns `self`. The result is ignored: a failure leaves the
        // mapping in place, which is harmless.
        let _ = unsafe { munmap(start, self.bytes + 2 * self.guard) };
    }
}
