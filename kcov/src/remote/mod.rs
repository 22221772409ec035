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
        /// Marks the current end of the records.
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

        /// Waits for `records` records since the mark or a full buffer, for at most `limit`.
        ///
        /// The kernel gives no notice of new records, so this polls, at growing intervals of up to
        /// 10 ms. A shorter trace means that no more came in time.
        pub fn wait(&self, mark: Mark, records: usize, limit: Duration) -> Trace<'_, M> {
            $crate::remote::wait(|| self.since(mark), records, limit)
        }

        /// Waits until no record has come for `quiet`, at most `limit`. Returns whether it was
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

/// A position in the buffer of a remote session: the end of the records when the mark was taken.
///
/// A mark that was taken before the session was restarted stands for the start of the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mark {
    records: usize,
    restarts: u64,
}

/// Number of restarts of a session. Identifies marks from before a restart.
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

/// Polls until `done` returns true, because no kernel tells when a section ends: at growing
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

/// Waits until `look` returns `records` records or a full buffer.
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

/// Waits until the number of records has not changed for `quiet`. Returns whether that happened.
fn settle(records: impl Fn() -> usize, quiet: Duration, limit: Duration) -> bool {
    let (mut seen, mut since) = (records(), Instant::now());
    poll(limit, quiet, || {
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
