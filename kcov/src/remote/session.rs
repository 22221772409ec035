//! A session that collects from background work.

use super::linux::{Argument, CommonHandle};
use super::netbsd;
use crate::device::Device;
use crate::error::{Error, Operation};
use crate::mode::{Mode, SEAL};
use crate::owner::{Active, End, Owner};
use crate::session::Recorded;
use crate::sys::Request;
use crate::trace::{Completeness, Trace};
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// The device collects from background work for as long as this value lives. As with
/// [`Session`](crate::Session), it owns or borrows `O`: a [`Device`] on Linux, an
/// [`Attachment`](netbsd::Attachment) on NetBSD, where somebody else attached to the source may end
/// the collection.
///
/// Dropping it disables, and on Linux releases the handles. There it cannot leave the thread that
/// enabled, because only that thread can disable, although the records come from other threads.
/// Leaking it is sound: collection ends with the device.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct RemoteSession<M: Mode, O: Owner = Device> {
    active: Active<O, Collects>,
    mode: M,
    start: Start,
    thread: PhantomData<O::Thread>,
}

#[derive(Debug)]
struct Collects {
    /// The handles; `None` for the source of an attachment.
    handles: Option<Box<Argument>>,
    /// The error of a failed restart, which ended the session. Another process may have enabled
    /// NetBSD's source since: disabling would end its collection.
    ended: Option<Error>,
}

impl<O: Owner> End<O> for Collects {
    fn end(&self, owner: &O) -> Result<(), Error> {
        let device = owner.device(SEAL);
        match (&self.ended, &self.handles) {
            (Some(error), _) => Err(error.clone()),
            // Nothing of the request is recorded, and no section is appended after it.
            (None, Some(_)) => device.request_disable(),
            (None, None) => {
                let disabled = device.file().request(Request::Disable);
                disabled.map_err(device.file().error(Operation::DisableRemote))
            }
        }
    }
}

impl<M: Mode, O: Owner> RemoteSession<M, O> {
    /// Wraps an owner that was just enabled.
    pub(super) fn enabled(owner: O, mode: M, handles: Option<Box<Argument>>) -> Self {
        let active = Active { owner, how: Collects { handles, ended: None } };
        RemoteSession { active, mode, start: Start::new(), thread: PhantomData }
    }

    /// The device that collects the records. On NetBSD they go to the source's buffer, not to its.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.active.owner.device(SEAL)
    }

    /// The mode of the records.
    #[inline]
    pub fn mode(&self) -> M {
        self.mode
    }

    /// Linux's common handle, if any. For [`Remote::any_common`](super::linux::Remote::any_common),
    /// the one that was found.
    #[must_use]
    pub fn common_handle(&self) -> Option<CommonHandle> {
        self.active.how.handles.as_deref().and_then(CommonHandle::of_argument)
    }

    /// Marks the current end of the records.
    #[inline]
    pub fn mark(&self) -> Mark {
        let trace = self.trace();
        let is_corrupt = matches!(trace.completeness(), Completeness::Corrupt { .. });
        Mark { records: if is_corrupt { usize::MAX } else { trace.len() }, start: self.start }
    }

    /// The records that have come since the mark; more may come. `None` if another session made
    /// the mark, or this one before it was [restarted](Self::restart). The trace is
    /// [`Corrupt`](Completeness::Corrupt) if the count was so at the mark, or is now less than then.
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
        wait(|| self.since(mark), records, until)
    }

    /// Waits until no record has come for `quiet`, or until a deadline. Returns whether it was
    /// quiet. A buffer that is full or has a corrupt count takes no more records, so it is quiet.
    pub fn settle(&self, quiet: Duration, until: Instant) -> bool {
        settle(|| self.trace().len(), quiet, until)
    }

    /// Empties the buffer and collects again, by disabling and enabling: the kernel could overwrite
    /// a 0 stored while it collects. On Linux, sections that are running are discarded, and objects
    /// that inherited the common handle keep it. On NetBSD, records that a running section has
    /// already made may remain.
    ///
    /// # Errors
    ///
    /// Same as the enabling before, and on NetBSD
    /// [`EndedElsewhere`](crate::ErrorKind::EndedElsewhere). The session has then ended: restarting
    /// and disabling it return the same error.
    pub fn restart(&mut self) -> Result<(), Error> {
        let Active { owner, how } = &mut self.active;
        let restarted = how.end(owner).and_then(|()| {
            self.start = Start::new();
            match &how.handles {
                Some(argument) => owner.device(SEAL).begin_remote(argument),
                None => netbsd::begin(owner, self.mode),
            }
        });
        how.ended = restarted.clone().err();
        restarted
    }

    /// Ends collection and returns all records since the start, with the device or the attachment.
    /// On Linux it releases the handles, and sections that are still running are discarded: wait
    /// for them first.
    ///
    /// # Errors
    ///
    /// The error drops an owner that the session owns.
    ///
    /// - [`NotEnabled`](crate::ErrorKind::NotEnabled), on Linux: this is a child that was forked
    ///   during the session.
    /// - [`EndedElsewhere`](crate::ErrorKind::EndedElsewhere), on NetBSD: somebody else has ended it.
    /// - If [`restart`](Self::restart) failed before: its error.
    pub fn disable(self) -> Result<Recorded<M, O>, Error> {
        Recorded::after(self.active, self.mode)
    }
}

/// A position in the buffer of a remote session: the end of the records when the mark was made.
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
