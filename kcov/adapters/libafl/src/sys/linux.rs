use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
use rustix::param::page_size;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::ffi::c_void;
use std::io;
use std::time::{Duration, Instant};

/// Waits for a child to end, for `limit` at most. Does not reap it.
pub(crate) fn has_ended(child: Pid, limit: Duration) -> io::Result<bool> {
    let child = pidfd_open(child, PidfdFlags::empty())?;
    let start = Instant::now();
    loop {
        let left = limit.saturating_sub(start.elapsed());
        // A time that does not fit is centuries.
        let left = Timespec::try_from(left).ok();
        match poll(&mut [PollFd::new(&child, PollFlags::IN)], left.as_ref()) {
            Err(Errno::INTR) => {}
            ready => return Ok(ready? > 0),
        }
    }
}

/// Whether the word at this address can be read. Does not fault if it cannot.
pub(crate) fn is_readable(address: *const u64) -> bool {
    let page = address.wrapping_byte_sub(address.addr() % page_size()).cast_mut().cast();
    // SAFETY: populating a page changes no contents. Where it cannot, it fails.
    let populated = unsafe { madvise(page, page_size(), Advice::LinuxPopulateRead) };
    // Before Linux 5.14 the advice is unknown: assume that the page is there.
    !matches!(populated, Err(Errno::FAULT | Errno::NOMEM))
}

/// Leaves pages out of the address space of future children: fork(2) copies the page tables of a
/// kcov buffer, at a cost for each page.
///
/// # Safety
///
/// The caller must ensure that the range is whole pages and that children do not access it.
pub(crate) unsafe fn keep_from_children(start: *mut c_void, bytes: usize) {
    // SAFETY: the caller ensures that children, for which alone this changes anything, do not miss
    // the pages. A failure only costs time.
    let _ = unsafe { madvise(start, bytes, Advice::LinuxDontFork) };
}

/// Gives future children zeroed pages instead of these. fork(2) then does not write-protect them
/// here.
///
/// # Safety
///
/// The caller must ensure that the range is whole pages, and that children may read zeros there.
pub(crate) unsafe fn wipe_in_children(start: *mut c_void, bytes: usize) {
    // SAFETY: the caller ensures that children may read zeros. A failure only costs time.
    let _ = unsafe { madvise(start, bytes, Advice::LinuxWipeOnFork) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
    use std::ptr::null_mut;

    #[test]
    fn truncated_pages_are_not_readable() {
        let bytes = 2 * page_size();
        let file = memfd_create(c"buffer", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&file, bytes as u64).unwrap();
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let start = unsafe { mmap(null_mut(), bytes, ProtFlags::READ, MapFlags::SHARED, &file, 0) };
        let start = start.unwrap().cast::<u64>().cast_const();
        let last = start.wrapping_byte_add(bytes - size_of::<u64>());
        let are_readable = || [is_readable(start), is_readable(last)];
        assert_eq!(are_readable(), [true, true]);
        ftruncate(&file, page_size() as u64).unwrap();
        assert_eq!(are_readable(), [true, false]);
        // SAFETY: nothing else refers to the mapping.
        unsafe { munmap(start.cast_mut().cast(), bytes) }.unwrap();
    }
}
