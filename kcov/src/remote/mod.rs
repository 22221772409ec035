//! Coverage from work that other threads of the kernel do.
//!
//! A [`Session`](crate::Session) records what its own thread does inside the kernel. Work that the
//! kernel does elsewhere is recorded where its source marks it, and each system lets a program ask
//! for such *sections* in its own way:
//!
//! | | [Linux](linux) | [NetBSD](netbsd), 10 and later |
//! |---|---|---|
//! | what is named | handles, up to 256 and a common one | one source |
//! | call | [`Device::enable_remote`] | [`Device::attach`], [`Attachment::enable`] |
//! | buffer | the device's own | the source's, shared by all who attach |
//! | owner | the thread that enabled | none: whoever is attached may end it |
//! | together with a session of the same thread | Linux 7.2 and later | always |
//!
//! Both modules compile everywhere; on the other system their first call fails with
//! [`Unsupported`](crate::ErrorKind::Unsupported).
//!
//! [`Device::enable_remote`]: crate::Device::enable_remote
//! [`Device::attach`]: crate::Device::attach
//! [`Attachment::enable`]: netbsd::Attachment::enable

pub mod linux;
pub mod netbsd;

use crate::mode::Mode;
use crate::trace::Trace;
use std::thread;
use std::time::{Duration, Instant};

/// Waits until there are `records` records or the buffer is full, at most for `limit`.
///
/// No kernel tells when a section ends, so this looks again and again.
fn wait_for<'b, M: Mode>(
    look: impl Fn() -> Trace<'b, M>,
    records: usize,
    limit: Duration,
) -> Trace<'b, M> {
    const LONGEST: Duration = Duration::from_millis(10);
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    loop {
        let trace = look();
        let left = limit.saturating_sub(start.elapsed());
        if trace.len() >= records || trace.is_truncated() || left.is_zero() {
            return trace;
        }
        thread::sleep(pause.min(left));
        pause = (pause * 2).min(LONGEST);
    }
}
