//! Thin calls: what the checks know of the kernel, and nothing more.
//!
//! Nothing here checks arguments or keeps order: a check must be able to do everything wrong.

mod device;
mod map;
mod task;

pub use crate::system_raw::*;
pub use device::{Device, page_size, page_words, pass_descriptor};
pub use map::{Map, accessible};
pub use task::{Child, Gate, child, thread};

use crate::errno::Errno;
use std::time::Duration;

/// The system call that gets traced: it does nothing but fail, and in the kernel's own code.
pub fn call() {
    let refused = crate::system_raw::refused_read();
    assert_eq!(refused, Err(Errno(libc::EBADF)), "read(-1) is refused");
}

/// Whether something is seen at least once: an interrupt may come and leave records on the way, but
/// not each time. On a busy host one may come often.
#[must_use]
pub fn at_times(seen: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(seen).take(1000).any(|seen| seen)
}

/// Waits until nothing has been recorded for a while, and returns the count.
///
/// For the buffers of threads that are about to block.
#[must_use]
pub fn settled(map: &Map) -> u64 {
    const STEP: Duration = Duration::from_millis(5);
    let mut last = map.count();
    let mut quiet = 0;
    while quiet < 10 {
        std::thread::sleep(STEP);
        // On a busy host all of a sleep may pass without the other thread having had its turn.
        (0..10).for_each(|_| std::thread::yield_now());
        let now = map.count();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

/// How long to wait for what a right kernel does at once: the end of a hang, however busy the host.
pub const LONG: Duration = Duration::from_secs(40);

/// Waits until `done`, for at most that time. Returns whether it is.
#[must_use]
pub fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + limit;
    while !done() {
        if std::time::Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    true
}
