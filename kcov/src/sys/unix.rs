//! Common parts of Linux and NetBSD: descriptors, open(2) and mmap(2).

use super::{Number, Place, host};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::c_void;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU64, Ordering};

pub(crate) use rustix::param::page_size;
pub(crate) use std::os::fd::OwnedFd as File;

pub(super) fn raw(errno: Errno) -> i32 {
    errno.raw_os_error()
}

pub(super) fn last_errno() -> i32 {
    io::Error::last_os_error().raw_os_error().unwrap_or(0)
}

/// # Safety
///
/// The caller must ensure that the file's driver takes the argument for this request, and that the
/// request accesses no other memory of this process than the argument and kcov's buffers.
pub(super) unsafe fn ioctl(file: &File, request: u32, argument: *const c_void) -> Result<(), i32> {
    // SAFETY: the caller vouches for the request and its argument.
    match unsafe { libc::ioctl(file.as_raw_fd(), request as _, argument) } {
        0 => Ok(()),
        -1 => Err(last_errno()),
        // No request of kcov returns a number, so this is another request. One proposal's does.
        _ => Err(raw(Errno::NOTTY)),
    }
}

pub(crate) fn open(path: &Path) -> Result<File, i32> {
    // Another file may be a terminal.
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOCTTY;
    rustix::fs::open(path, flags, Mode::empty()).map_err(raw)
}

/// Moves the open file to another descriptor, close-on-exec. Fails with `EEXIST` if an exact number
/// is in use: dup2(2) would close somebody's file.
pub(crate) fn move_to(file: File, number: Number) -> Result<File, i32> {
    let (least, exact) = match number {
        Number::AtLeast(least) => (least, false),
        Number::Exactly(fd) if file.as_raw_fd() == fd => return Ok(file),
        Number::Exactly(fd) => (fd, true),
    };
    if least < 0 {
        // As the kernel would; rustix asserts that it is not asked.
        return Err(raw(Errno::INVAL));
    }
    let moved = rustix::io::fcntl_dupfd_cloexec(&file, least).map_err(raw)?;
    if exact && moved.as_raw_fd() != least { Err(raw(Errno::EXIST)) } else { Ok(moved) }
}

/// Makes a system call without side effects that an instrumented kernel records, for probing.
pub(crate) fn provoke() {
    let _ = rustix::fs::stat("/");
}

/// A shared, writable mapping of a whole kcov buffer, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Pages {
    address: NonNull<c_void>,
    bytes: usize,
    /// Inaccessible bytes on each side.
    guard: usize,
    /// `Some` if children inherit only the first page.
    parent: Option<ForkMark>,
}

// SAFETY: the mapping belongs to the process, not to a thread. This type accesses it only
// atomically or returns its address.
unsafe impl Send for Pages {}
// SAFETY: this type accesses the mapping only atomically or returns its address.
unsafe impl Sync for Pages {}

impl Pages {
    /// Maps the first `bytes` bytes of the device, shared. A private mapping of a kcov buffer would
    /// no longer show the kernel's writes once user space has stored to it.
    pub(crate) fn map(file: &File, bytes: usize, place: Place) -> Result<Pages, i32> {
        let mut pages = match place.guard_pages {
            0 => Pages::map_at(file, bytes, 0, place.address)?,
            guard_pages => Pages::map_guarded(file, bytes, guard_pages, place.address)?,
        };
        let rest = bytes.saturating_sub(page_size());
        if place.not_inherited && rest > 0 {
            pages.parent = Some(ForkMark::new()?);
            let start = pages.address.as_ptr().wrapping_byte_add(page_size());
            // SAFETY: these pages are ours. Only children lose them: there this crate accesses only
            // the count word, and the caller of `Builder::not_inherited` reads no trace.
            unsafe { host::keep_from_children(start, rest) }?;
        }
        Ok(pages)
    }

    fn map_guarded(
        file: &File,
        bytes: usize,
        guard_pages: usize,
        address: Option<usize>,
    ) -> Result<Pages, i32> {
        let guard = guard_pages.saturating_mul(page_size());
        let all = guard.saturating_mul(2).saturating_add(bytes);
        let wanted = address.map(|address| address.wrapping_sub(guard));
        // SAFETY: without `MAP_FIXED` the address is a hint, and no existing mapping is replaced.
        let start =
            unsafe { mmap_anonymous(hint(wanted), all, ProtFlags::empty(), MapFlags::PRIVATE) };
        let start = start.map_err(raw)?;
        let unmap = |offset, bytes| {
            // SAFETY: this is a part of the reservation, which nobody else uses. A failure leaves it
            // in place, which is harmless.
            let _ = unsafe { munmap(start.wrapping_byte_add(offset), bytes) };
        };
        is_wanted(start, wanted).inspect_err(|_| unmap(0, all))?;
        let place = start.wrapping_byte_add(guard);
        let (prot, flags) =
            (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED | MapFlags::FIXED);
        // SAFETY: `MAP_FIXED` replaces only pages of the reservation, which nobody else uses.
        if let Err(errno) = unsafe { mmap(place, bytes, prot, flags, file, 0) } {
            // The middle may be a hole now, and another thread may have mapped something there. So
            // only the guard pages go. Address space is lost if the middle is still reserved.
            unmap(0, guard);
            unmap(guard + bytes, guard);
            return Err(raw(errno));
        }
        let address = NonNull::new(place).expect("an address after another one");
        Ok(Pages { address, bytes, guard, parent: None })
    }

    /// Maps `bytes` bytes at `offset`, at this address if there is one.
    pub(crate) fn map_at(
        file: &File,
        bytes: usize,
        offset: u64,
        address: Option<usize>,
    ) -> Result<Pages, i32> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without `MAP_FIXED` the address is a hint, and no existing mapping is replaced.
        let start = unsafe { mmap(hint(address), bytes, prot, MapFlags::SHARED, file, offset) };
        let start = start.map_err(raw)?;
        let first = NonNull::new(start).expect("mmap never returns null");
        // From here on, dropping `pages` unmaps them.
        let pages = Pages { address: first, bytes, guard: 0, parent: None };
        is_wanted(start, address).map(|()| pages)
    }

    pub(crate) fn start(&self) -> NonNull<u64> {
        self.address.cast()
    }

    /// The pages of this process and their guards: without the second guard in a child that has only
    /// the first page.
    fn range(&self) -> (*mut c_void, usize) {
        let start = self.address.as_ptr().wrapping_byte_sub(self.guard);
        let is_whole = self.parent.as_ref().is_none_or(ForkMark::is_here);
        (start, self.guard + if is_whole { self.bytes + self.guard } else { page_size() })
    }

    /// Checks that the first `bytes` bytes can be read: the kernel reads a word of each page for a
    /// pipe, and fails with `EFAULT` where it cannot. Another mapping in their place passes as well.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), i32> {
        // Fits into a pipe and into one vector of writev(2).
        const MOST: usize = 512;
        let (out, into) = pipe_with(PipeFlags::CLOEXEC).map_err(raw)?;
        let first = self.address.as_ptr().cast::<u8>();
        let vector = |at| libc::iovec { iov_base: first.wrapping_add(at).cast(), iov_len: 8 };
        let mut vectors = [vector(0); MOST];
        let mut words = [0; 8 * MOST];
        let mut pages = (0..bytes.min(self.bytes)).step_by(page_size());
        loop {
            let count = vectors.iter_mut().zip(&mut pages).map(|(to, at)| *to = vector(at)).count();
            if count == 0 {
                return Ok(());
            }
            // SAFETY: the vectors are valid. The memory they point to need not be: if the kernel
            // cannot read it, writev(2) fails or returns a smaller number.
            let written = unsafe { libc::writev(into.as_raw_fd(), vectors.as_ptr(), count as _) };
            match usize::try_from(written) {
                Ok(bytes) if bytes == 8 * count => {}
                Ok(_) => return Err(raw(Errno::FAULT)),
                Err(_) => return Err(last_errno()),
            }
            rustix::io::read(&out, &mut words[..8 * count]).map_err(raw)?;
        }
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let (start, bytes) = self.range();
        // SAFETY: `map` mapped this range in this process, or in a parent from which it inherited it,
        // and every view of it borrows the owner of `self`. Whoever unmaps it in another way has to
        // abandon the device. A failure is ignored: it leaves the mapping, which is harmless.
        let _ = unsafe { munmap(start, bytes) };
    }
}

/// The address as a hint for mmap(2).
fn hint(address: Option<usize>) -> *mut c_void {
    std::ptr::without_provenance_mut(address.unwrap_or(0))
}

/// Fails if mmap(2) did not take the hint.
fn is_wanted(start: *mut c_void, address: Option<usize>) -> Result<(), i32> {
    let wanted = address.is_none_or(|address| address == start.addr());
    if wanted { Ok(()) } else { Err(raw(Errno::EXIST)) }
}

/// Tells a process from its children: a page that children of fork(2) get filled with zeros. Process
/// ids do not tell, because a child may be in another namespace.
#[derive(Debug)]
struct ForkMark(NonNull<AtomicU64>);

impl ForkMark {
    fn new() -> Result<ForkMark, i32> {
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: without an address no existing mapping is replaced.
        let page = unsafe { mmap_anonymous(null_mut(), page_size(), prot, MapFlags::PRIVATE) };
        let mark =
            ForkMark(NonNull::new(page.map_err(raw)?).expect("mmap never returns null").cast());
        // SAFETY: the page is ours, and `is_here` expects it to be zeroed in children.
        unsafe { host::zero_in_children(mark.0.as_ptr().cast(), page_size()) }?;
        mark.word().store(1, Ordering::Relaxed);
        Ok(mark)
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: `new` mapped the page, and only `drop` unmaps it; zeros are a valid value.
        unsafe { self.0.as_ref() }
    }

    fn is_here(&self) -> bool {
        self.word().load(Ordering::Relaxed) != 0
    }
}

impl Drop for ForkMark {
    fn drop(&mut self) {
        // SAFETY: `new` mapped the page, children inherit it, and no reference to it is left.
        let _ = unsafe { munmap(self.0.as_ptr().cast(), page_size()) };
    }
}
