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
