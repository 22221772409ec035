//! What the systems do differently. The modules export the same names.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux {
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
        }
        pub(crate) use linux::has_ended;
    } else {
        mod bsd {
            use rustix::event::kqueue::{Event, EventFilter, EventFlags, ProcessEvents, kevent, kqueue};
            use rustix::io::Errno;
            use rustix::process::Pid;
            use std::io;
            use std::ptr::null_mut;
            use std::time::{Duration, Instant};

            /// Waits for a child to end, for `limit` at most. Does not reap it.
            pub(crate) fn has_ended(child: Pid, limit: Duration) -> io::Result<bool> {
                let queue = kqueue()?;
                let filter = EventFilter::Proc { pid: child, flags: ProcessEvents::EXIT };
                let change = [Event::new(filter, EventFlags::ADD | EventFlags::ONESHOT, null_mut())];
                let mut events = Vec::with_capacity(1);
                let start = Instant::now();
                loop {
                    let left = limit.saturating_sub(start.elapsed());
                    // SAFETY: the event names a process, no descriptor.
                    match unsafe {
                        kevent(&queue, &change, rustix::buffer::spare_capacity(&mut events), Some(left))
                    } {
                        Err(Errno::INTR) => {}
                        // The child is a zombie: only this process reaps it.
                        Err(Errno::SRCH) => return Ok(true),
                        found => return Ok(found? > 0),
                    }
                }
            }
        }
        pub(crate) use bsd::has_ended;
    }
}
