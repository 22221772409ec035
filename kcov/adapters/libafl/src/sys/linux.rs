use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};
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
