//! Thin wrappers of system calls: all that the checks know about the kernel.
//!
//! Nothing here checks arguments or enforces an order: a check must be able to misuse the device.

mod device;
mod map;
pub(crate) mod sites;
mod task;

pub use crate::system::raw::*;
pub use device::{Device, page_size, page_words, pass_descriptor};
pub use map::{Map, READ_WRITE, Width, accessible, peek};
pub use sites::{Sites, sites};
pub use task::{Child, Gate, child, thread};

use crate::errno::Errno;
use std::time::Duration;

/// Makes the traced system call. It only fails, and it does so in the kernel's own code.
pub fn call() {
    let refused = crate::system::raw::refused_read();
    assert_eq!(refused, Err(Errno(libc::EBADF)), "read(-1) is refused");
}

/// Whether `seen` holds at least once in many tries. An interrupt may add records to some calls,
/// and on a busy host to many of them.
pub fn at_times(seen: impl FnMut() -> bool) -> bool {
    std::iter::repeat_with(seen).take(1000).any(|seen| seen)
}

/// Waits until nothing has been recorded for a while, and returns the count.
///
/// For buffers of threads that are about to block.
pub fn settled(map: &Map) -> u64 {
    all_settled(&[map])[0]
}

pub fn all_settled(maps: &[&Map]) -> Vec<u64> {
    // With one processor, the other threads run as soon as this one sleeps. Others may be slow.
    let step = Duration::from_millis(if has_one_processor() { 1 } else { 5 });
    let counts = || -> Vec<u64> { maps.iter().map(|map| map.count()).collect() };
    let mut last = counts();
    let mut quiet = 0;
    while quiet < 10 {
        std::thread::sleep(step);
        // On a busy host, the other threads may not get to run during a sleep.
        (0..10).for_each(|_| std::thread::yield_now());
        let now = counts();
        quiet = if now == last { quiet + 1 } else { 0 };
        last = now;
    }
    last
}

fn has_one_processor() -> bool {
    std::thread::available_parallelism().is_ok_and(|number| number.get() == 1)
}

/// How long to wait for something that a correct kernel does at once, however busy the host is.
pub const LONG: Duration = Duration::from_secs(40);

/// Waits for `done` for at most `limit`. Returns whether it became true.
pub fn wait_for(limit: Duration, mut done: impl FnMut() -> bool) -> bool {
    let end = std::time::Instant::now() + limit;
    // A long wait must not look like a guest that hangs at work.
    let pauses = [1, 1, 2, 4, 8].into_iter().chain(std::iter::repeat(16));
    for pause in pauses.map(Duration::from_millis) {
        if done() {
            return true;
        }
        if std::time::Instant::now() >= end {
            break;
        }
        std::thread::sleep(pause);
    }
    false
}
