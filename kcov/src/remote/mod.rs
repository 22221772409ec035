//! Coverage from work that other threads of the kernel do.
//!
//! A [`Session`](crate::Session) records what its own thread does in the kernel. Work that the kernel
//! does elsewhere is recorded in *sections*, where the kernel marks its source, and each system lets a
//! program ask for them in its own way:
//!
//! | | [Linux](linux) | [NetBSD](netbsd), 10 and later |
//! |---|---|---|
//! | names | up to 256 handles and a common one | one source |
//! | call | [`Device::enable_remote`] | [`Device::attach`], [`Attachment::enable`] |
//! | buffer | the device's own | the source's, shared by all who attach |
//! | records appear | when a section ends | as they are made |
//! | owner | the thread that enabled | none: whoever is attached may end it |
//! | together with a session of the same thread | Linux 7.2 and later | always |
//!
//! # Marks, not resets
//!
//! The kernel adds to the buffer while you read it: it loads the count, stores records, then stores
//! the new count. A 0 that you store in between is lost, and the next test case begins with the
//! records of the last one. So a remote session is not reset between cases. Take a [`Mark`] before a
//! case and read what came since; `settle` waits until nothing more comes. When the buffer fills up,
//! `restart` empties it, by disabling and enabling again.
//!
//! A section that ends late, after the next mark, counts for the next case. Only the target knows when
//! its work is done: wait for that first where it can be known, and let `settle` do the rest.
//!
//! On another system the first call fails with [`Unsupported`](crate::ErrorKind::Unsupported).
//!
//! [`Device::enable_remote`]: crate::Device::enable_remote
//! [`Device::attach`]: crate::Device::attach
//! [`Attachment::enable`]: netbsd::Attachment::enable

/// How every remote session is read.
macro_rules! reading {
    () => {
        /// The end of what was collected so far.
        #[inline]
        pub fn mark(&self) -> Mark {
            self.starts.mark(self.trace())
        }

        /// The records that have come since the mark. More may come.
        #[inline]
        pub fn since(&self, mark: Mark) -> Trace<'_, M> {
            self.starts.since(self.trace(), mark)
        }

        /// All records since the start. More may come.
        #[inline]
        pub fn trace(&self) -> Trace<'_, M> {
            Trace::freeze(self.buffer(), self.mode)
        }

        /// Waits until `records` records have come since the mark or the buffer is full, at most for
        /// `limit`.
        ///
        /// The kernel tells nobody when records come, so this polls, at growing intervals of up to 10
        /// ms. A shorter trace means that no more came in time.
        pub fn wait(&self, mark: Mark, records: usize, limit: Duration) -> Trace<'_, M> {
            $crate::remote::wait(|| self.since(mark), records, limit)
        }

        /// Waits until no record has come for `quiet`, at most for `limit`; returns whether it became
        /// quiet.
        pub fn settle(&self, quiet: Duration, limit: Duration) -> bool {
            $crate::remote::settle(|| self.trace().len(), quiet, limit)
        }
    };
}
use reading;

pub mod linux;
pub mod netbsd;

use crate::mode::Mode;
use crate::trace::{Completeness, Trace};
use std::thread;
use std::time::{Duration, Instant};

/// A place in the buffer of a remote session: its end when the mark was taken.
///
/// A mark that was taken before the session was restarted stands for the start of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    records: usize,
    restarts: u64,
}

/// How often a session was restarted, by which the marks of an earlier start are told.
#[derive(Clone, Copy, Debug, Default)]
struct Starts(u64);

impl Starts {
    fn restart(&mut self) {
        self.0 += 1;
    }

    fn mark<M: Mode>(self, trace: Trace<'_, M>) -> Mark {
        Mark { records: trace.len(), restarts: self.0 }
    }

    fn since<M: Mode>(self, trace: Trace<'_, M>, mark: Mark) -> Trace<'_, M> {
        trace.since(if mark.restarts == self.0 { mark.records } else { 0 })
    }
}

/// Looks again and again whether something is done, as no kernel tells when a section ends: at growing
/// intervals of at most `most`, for at most `limit`.
fn poll(limit: Duration, most: Duration, mut done: impl FnMut() -> bool) -> bool {
    const LONGEST: Duration = Duration::from_millis(10);
    let start = Instant::now();
    let mut pause = Duration::from_micros(20);
    while !done() {
        let left = limit.saturating_sub(start.elapsed());
        if left.is_zero() {
            return false;
        }
        thread::sleep(pause.min(left).min(most));
        pause = (pause * 2).min(LONGEST);
    }
    true
}

/// Waits until `look` gives `records` records or a full buffer.
fn wait<'b, M: Mode>(
    look: impl Fn() -> Trace<'b, M>,
    records: usize,
    limit: Duration,
) -> Trace<'b, M> {
    let mut trace = look();
    poll(limit, limit, || {
        trace = look();
        trace.len() >= records || trace.completeness() != Completeness::Complete
    });
    trace
}

/// Waits until the number of records has not changed for `quiet`; whether it became quiet.
fn settle(records: impl Fn() -> usize, quiet: Duration, limit: Duration) -> bool {
    let (mut seen, mut since) = (records(), Instant::now());
    poll(limit, quiet, || {
        // Before the records are looked at, so that what comes meanwhile is not missed.
        let waited = since.elapsed();
        let now = records();
        if now != seen {
            (seen, since) = (now, Instant::now());
            return false;
        }
        waited >= quiet
    })
}
