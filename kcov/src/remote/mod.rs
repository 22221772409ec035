//! Coverage from work that the kernel does outside the calling thread.
//!
//! A [`Session`](crate::Session) records what its own thread executes in the kernel. Work elsewhere
//! is recorded in *sections*, where the kernel marks the source of the work. Each system has its
//! own way to request sections:
//!
//! | | [Linux](linux) | [NetBSD](netbsd), 10 and later |
//! |---|---|---|
//! | names | up to 256 handles and a common one | one source |
//! | call | [`Device::enable_remote`] | [`Device::attach`], [`Attachment::enable`] |
//! | buffer | the device's own | the source's, shared by all who attach |
//! | records appear | when a section ends | as they are made |
//! | owner | the thread that enabled | none: anybody attached may end it |
//! | together with a session of the same thread | Linux 7.2 and later | always |
//!
//! # Marks, not resets
//!
//! The kernel adds to the buffer while you read it: it loads the count, stores records, then stores
//! the new count. If you store a 0 in between, the kernel overwrites it, and the next test case
//! begins with the records of the last one. So do not reset a remote session between cases. Take a
//! [`Mark`] before a case and read the records since; `settle` waits for records to stop. When the
//! buffer fills up, `restart` empties it by disabling and enabling again.
//!
//! A section that ends late, after the next mark, counts for the next case. Only the target knows
//! when its work is done: if possible, wait for that first, and let `settle` do the rest.
//!
//! On another system the first call fails with [`Unsupported`](crate::ErrorKind::Unsupported).
//!
//! [`Device::enable_remote`]: crate::Device::enable_remote
//! [`Device::attach`]: crate::Device::attach
//! [`Attachment::enable`]: netbsd::Attachment::enable

/// The methods that read a remote session.
macro_rules! reading {
    () => {
        /// The mode of the records.
        #[inline]
        pub fn mode(&self) -> M {
            self.mode
        }

        /// Marks the current end of the records.
        #[inline]
        pub fn mark(&self) -> Mark {
            Mark { records: self.trace().len(), start: self.start }
        }

        /// The records that have come since the mark; more may come. `None` if another session made
        /// the mark, or this one before it was [restarted](Self::restart).
        #[inline]
        pub fn since(&self, mark: Mark) -> Option<Trace<'_, M>> {
            (mark.start == self.start).then(|| self.trace().since(mark.records))
        }

        /// All records since the start. More may come.
        #[inline]
        pub fn trace(&self) -> Trace<'_, M> {
            Trace::freeze(self.active.owner.buffer(SEAL), self.mode)
        }

        /// Waits for `records` records since the mark or a full buffer, until a deadline, and
        /// returns the records since the mark. `None` as from [`since`](Self::since).
        ///
        /// The kernel gives no notice of new records, so this polls, at growing intervals of up to
        /// 10 ms. A shorter trace means that no more came in time.
        pub fn wait(&self, mark: Mark, records: usize, until: Instant) -> Option<Trace<'_, M>> {
            $crate::remote::wait(|| self.since(mark), records, until)
        }

        /// Waits until no record has come for `quiet`, or until a deadline. Returns whether it was
        /// quiet.
        pub fn settle(&self, quiet: Duration, until: Instant) -> bool {
            $crate::remote::settle(|| self.trace().len(), quiet, until)
        }
    };
}
use reading;

pub mod linux;
pub mod netbsd;

use crate::mode::Mode;
use crate::trace::{Completeness, Trace};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// A position in the buffer of a remote session: the end of the records when the mark was taken.
/// Only the session that made it takes it, and only until it is restarted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    records: usize,
    start: Start,
}

/// Identifies one start of one session of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Start(u64);

impl Start {
    fn new() -> Start {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Start(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// Polls until `done` returns true, because no kernel tells when a section ends: at growing
/// intervals of at most `most`, until a deadline.
fn poll(until: Instant, most: Duration, mut done: impl FnMut() -> bool) -> bool {
    const LONGEST: Duration = Duration::from_millis(10);
    let mut pause = Duration::from_micros(20);
    while !done() {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return false;
        }
        thread::sleep(pause.min(left).min(most));
        pause = (pause * 2).min(LONGEST);
    }
    true
}

/// Waits until `look` returns `records` records or a full buffer.
fn wait<'b, M: Mode>(
    look: impl Fn() -> Option<Trace<'b, M>>,
    records: usize,
    until: Instant,
) -> Option<Trace<'b, M>> {
    let mut trace = look();
    poll(until, Duration::MAX, || {
        trace = look();
        let enough = |trace: &Trace<'_, M>| {
            trace.len() >= records || trace.completeness() != Completeness::Complete
        };
        trace.as_ref().is_none_or(enough)
    });
    trace
}

/// Waits until the number of records has not changed for `quiet`. Returns whether that happened.
fn settle(records: impl Fn() -> usize, quiet: Duration, until: Instant) -> bool {
    let (mut seen, mut since) = (records(), Instant::now());
    poll(until, quiet, || {
        // Measure before counting, so that records that come meanwhile are not missed.
        let waited = since.elapsed();
        let now = records();
        if now != seen {
            (seen, since) = (now, Instant::now());
            return false;
        }
        waited >= quiet
    })
}
