//! Common parts of Linux and NetBSD: descriptors, open(2) and mmap(2).

use crate::buffer::{Buffer, Width};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use std::ffi::c_void;
use std::hash::{BuildHasher, RandomState};
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use rustix::param::page_size;
pub(crate) use std::os::fd::OwnedFd as File;

pub(super) fn raw(errno: Errno) -> i32 {
    errno.raw_os_error()
}

pub(crate) fn open(path: &Path) -> Result<File, i32> {
    rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).map_err(raw)
}

/// Moves the open file to the lowest free descriptor that is at least `least`, close-on-exec.
pub(crate) fn move_up(file: File, least: i32) -> Result<File, i32> {
    rustix::io::fcntl_dupfd_cloexec(&file, least).map_err(raw)
}

/// Device and inode number of an open file, or the errno of fstat(2).
pub(crate) type Identity = Result<(u64, u64), i32>;

#[allow(clippy::useless_conversion, reason = "the types differ between systems")]
pub(crate) fn identity(file: &File) -> Identity {
    let stat = rustix::fs::fstat(file).map_err(raw)?;
    Ok((stat.st_dev as u64, stat.st_ino as u64))
}

/// Makes a system call without side effects that an instrumented kernel records, for probing.
pub(crate) fn provoke() {
    let _ = rustix::fs::stat("/");
}

/// A shared, writable mapping of a whole kcov buffer, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) address: NonNull<c_void>,
    pub(crate) bytes: usize,
    /// Inaccessible bytes on each side.
    guard: usize,
}

// SAFETY: the mapping belongs to the process, not to a thread. This type accesses it only
// atomically or returns its address.
unsafe impl Send for Pages {}
// SAFETY: this type accesses the mapping only atomically or returns its address.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps the first `bytes` bytes of the device, shared. A private mapping of a kcov buffer would
    /// no longer show the kernel's writes once user space has stored to it.
    pub(crate) fn map(file: &File, bytes: usize, guard_pages: usize) -> Result<Pages, i32> {
        if guard_pages == 0 {
            return Pages::map_at(file, bytes, 0);
        }
        let guard = guard_pages.saturating_mul(page_size());
        let all = guard.saturating_mul(2).saturating_add(bytes);
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let start =
            unsafe { mmap_anonymous(null_mut(), all, ProtFlags::empty(), MapFlags::PRIVATE) };
        let place = start.map_err(raw)?.wrapping_byte_add(guard);
        let address = NonNull::new(place).expect("mmap never returns null");
        // From here on, dropping `pages` unmaps everything.
        let pages = Pages { address, bytes, guard };
        let (prot, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: `MAP_FIXED` replaces only pages of the new mapping, which nobody else uses yet.
        unsafe { mmap(place, bytes, prot, flags, file, 0) }.map_err(raw)?;
        Ok(pages)
    }

    /// Maps `bytes` bytes at `offset`.
    pub(crate) fn map_at(file: &File, bytes: usize, offset: u64) -> Result<Pages, i32> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let address = unsafe { mmap(null_mut(), bytes, prot, MapFlags::SHARED, file, offset) };
        let address = NonNull::new(address.map_err(raw)?).expect("mmap never returns null");
        Ok(Pages { address, bytes, guard: 0 })
    }

    pub(crate) fn start(&self) -> NonNull<u64> {
        self.address.cast()
    }

    pub(crate) fn set_writable(&self, writable: bool) -> Result<(), i32> {
        let mut flags = MprotectFlags::READ;
        flags.set(MprotectFlags::WRITE, writable);
        // SAFETY: these pages are the device's own buffer; this crate stores only while writable.
        unsafe { mprotect(self.address.as_ptr(), self.bytes, flags) }.map_err(raw)
    }

    /// The addresses of the last word of each page.
    fn page_ends(&self) -> impl Iterator<Item = *mut u64> {
        let (start, page) = (self.address.as_ptr().cast::<u8>(), page_size());
        let ends = (0..self.bytes / page).map(move |index| (index + 1) * page - size_of::<u64>());
        ends.map(move |end| start.wrapping_add(end).cast())
    }

    /// Checks that these pages and the file still belong to one device. `is_free` tells whether
    /// nothing is traced into the buffer.
    pub(crate) fn look(
        &self,
        file: &File,
        was: u64,
        width: Width,
        is_free: impl FnOnce() -> bool,
    ) -> Look {
        let mut found = Look { stamp: None, file_is_ours: false };
        // A second mapping, to compare the first one with.
        let Ok(view) = Pages::map_at(file, self.bytes, 0) else { return found };
        // SAFETY: `page_ends` returns aligned addresses in `view`, which outlives this closure and is
        // accessed only atomically.
        let word = |word: *mut u64| unsafe { AtomicU64::from_ptr(word) };
        let ends: Vec<_> = view.page_ends().map(|end| word(end).load(Ordering::Relaxed)).collect();
        found.file_is_ours = ends.last() == Some(&was);
        // If nothing was mapped any more, the new view may have taken the old address. Decide
        // before storing anything: the descriptor number may now belong to another kcov device. If
        // a record has overwritten the stamp, both mappings must show the same words.
        if view.address == self.address || !(found.file_is_ours || self.holds(&ends)) {
            return found;
        }
        // If somebody else stored a count, some kernels write in front of the buffer. Keep a valid
        // count: if the device is not free, it counts a thread's records.
        // SAFETY: `view` maps `self.bytes` bytes, whole pages, outlives this buffer, and is accessed
        // only atomically.
        unsafe { Buffer::new(view.start(), self.bytes, width) }.clear_invalid_count(width);
        if !is_free() {
            return found;
        }
        word(view.start().as_ptr()).store(0, Ordering::Relaxed);
        let first = stamp();
        let mark = |(end, index): (*mut u64, u64)| {
            let mark = first.wrapping_add(index);
            word(end).store(mark, Ordering::Relaxed);
            mark
        };
        let marks: Vec<_> = view.page_ends().zip(0..).map(mark).collect();
        found.stamp = marks.last().copied().filter(|_| self.holds(&marks));
        found
    }

    /// Whether these marks are in the last words of the pages. The range may hold any mapping, or
    /// none, so the kernel reads it: it fails safely on unreadable memory.
    fn holds(&self, marks: &[u64]) -> bool {
        // Fits into a pipe and into one vector of writev(2).
        const MOST: usize = 512;
        let Ok((out, into)) = rustix::pipe::pipe() else { return false };
        let mut found = Vec::with_capacity(marks.len());
        for ends in self.page_ends().collect::<Vec<_>>().chunks(MOST) {
            let vector = |end: &*mut u64| libc::iovec { iov_base: end.cast(), iov_len: 8 };
            let vectors: Vec<_> = ends.iter().map(vector).collect();
            let (fd, count) = (std::os::fd::AsRawFd::as_raw_fd(&into), vectors.len() as _);
            // SAFETY: the vectors are valid. The memory they point to need not be: if the kernel
            // cannot read it, writev(2) returns `EFAULT` or a smaller number.
            let written = unsafe { libc::writev(fd, vectors.as_ptr(), count) };
            if usize::try_from(written) != Ok(8 * ends.len()) {
                return false;
            }
            for _ in ends {
                let mut word = [0; 8];
                if rustix::io::read(&out, &mut word) != Ok(8) {
                    return false;
                }
                found.push(u64::from_ne_bytes(word));
            }
        }
        found == marks
    }

    /// Unmaps the buffer if it is certainly still there; otherwise leaves the range alone. Always
    /// leaves the guard pages, because nothing tells them from other mappings.
    pub(crate) fn abandon(self, stamp: u64) {
        let pages = std::mem::ManuallyDrop::new(self);
        let last = Pages {
            address: pages.address.map_addr(|start| {
                let last = start.get() + pages.bytes - page_size();
                last.try_into().expect("an address behind another one")
            }),
            bytes: page_size(),
            guard: 0,
        };
        let last = std::mem::ManuallyDrop::new(last);
        if super::host::is_one_mapping(pages.address, pages.bytes) && last.holds(&[stamp]) {
            // SAFETY: one shared mapping fills this range and has this buffer's unique stamp. Only
            // `self` gave access to it, so nobody uses it any more.
            let _ = unsafe { munmap(pages.address.as_ptr(), pages.bytes) };
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let start = self.address.as_ptr().wrapping_byte_sub(self.guard);
        // SAFETY: `map` mapped exactly this range, nothing else unmaps it, and every view of it
        // borrows the owner of `self`. A failure is ignored: it leaves the mapping in place, which
        // is harmless.
        let _ = unsafe { munmap(start, self.bytes + 2 * self.guard) };
    }
}

/// What remains of a device.
#[derive(Debug)]
pub(crate) struct Look {
    /// The new last word of the buffer, if pages and file still belong to the device.
    pub(crate) stamp: Option<u64>,
    /// Whether the file is certainly the device's.
    pub(crate) file_is_ours: bool,
}

/// A random number, to tell this buffer from others and from records.
pub(crate) fn stamp() -> u64 {
    RandomState::new().hash_one(std::process::id())
}
