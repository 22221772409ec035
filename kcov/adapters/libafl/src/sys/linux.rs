use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::mm::{Advice, madvise};
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
    let mut word = 0_u64;
    let here = libc::iovec { iov_base: (&raw mut word).cast(), iov_len: size_of::<u64>() };
    let there = libc::iovec { iov_base: address.cast_mut().cast(), iov_len: size_of::<u64>() };
    // SAFETY: getpid(2) has no preconditions.
    let this_process = unsafe { libc::getpid() };
    // SAFETY: the kernel writes to `word` only. If it cannot read at `address`, it returns `EFAULT`.
    let read =
        unsafe { libc::process_vm_readv(this_process, &raw const here, 1, &raw const there, 1, 0) };
    // A kernel without the call cannot tell.
    read >= 0 || io::Error::last_os_error().raw_os_error() != Some(libc::EFAULT)
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
