//! Tracing of one thread, from enable to disable, and the records that it leaves.

use crate::device::Device;
use crate::error::Error;
use crate::mode::{Mode, SEAL};
use crate::owner::{Active, End, Owner};
use crate::trace::Trace;
use std::marker::PhantomData;

/// The calling thread is traced for as long as this value lives.
///
/// A session borrows its device (`D` is `&mut Device`, from [`Device::enable`]) or owns it (`D` is
/// [`Device`], from [`Device::into_session`]).
///
/// Dropping it disables, on early return and while unwinding too. It cannot leave its thread: the
/// kernel traces the thread that enabled, and only that thread can disable. Leaking it is sound:
/// the thread stays traced until it ends or the device is dropped in it.
///
/// The disabling system call is recorded too, up to where tracing stops, so the count word is then
/// restored: the trace ends where `disable` was called, for readers in other processes as well.
///
/// A forked child inherits the session, but is not traced. There, [`trace`](Self::trace) shows the
/// parent's records, and [`reset`](Self::reset) removes them.
///
/// ```no_run
/// use kcov::{Device, Error, Session, mode::TracePc};
///
/// /// Holds device and session for as long as it fuzzes.
/// struct Executor {
///     session: Session<TracePc>,
/// }
///
/// impl Executor {
///     fn new() -> Result<Executor, Error> {
///         Ok(Executor { session: Device::open()?.into_session(TracePc)? })
///     }
///
///     fn run(&mut self, case: impl FnOnce()) -> usize {
///         self.session.reset();
///         case();
///         self.session.trace().len()
///     }
/// }
/// ```
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct Session<M: Mode, D: Owner = Device> {
    active: Active<D, Local<M>>,
    this_thread: PhantomData<*mut ()>,
}

/// Tracing of the calling thread in one mode.
#[derive(Debug)]
struct Local<M>(M);

impl<M: Mode, D: Owner> End<D> for Local<M> {
    fn end(&self, owner: &D) -> Result<(), Error> {
        let device = owner.device(SEAL);
        device.end(self.0.kind(SEAL).width(device.buffer().width()))
    }
}

impl<M: Mode, D: Owner> Session<M, D> {
    /// Wraps a device that was just enabled on this thread.
    pub(crate) fn enabled(device: D, mode: M) -> Session<M, D> {
        Session { active: Active { owner: device, how: Local(mode) }, this_thread: PhantomData }
    }

    /// The device through which this thread is traced.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.active.owner.device(SEAL)
    }

    /// The mode of the records.
    #[inline]
    pub fn mode(&self) -> M {
        self.active.how.0
    }

    /// Forgets the records, so that the next one is the first.
    ///
    /// One store, no system call. Enabling needs no reset: the end of its system call is not part
    /// of the trace.
    #[inline]
    pub fn reset(&mut self) {
        let buffer = self.device().buffer();
        buffer.set_count(self.mode().kind(SEAL).width(buffer.width()), 0);
    }

    /// The records since the last reset. Loads one word; the records are read in place.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        Trace::freeze(self.device().buffer(), self.mode())
    }

    /// Ends tracing and returns the records since the last reset, with the device.
    ///
    /// # Errors
    ///
    /// The error drops a device that the session owns.
    ///
    /// - [`NotEnabled`](crate::ErrorKind::NotEnabled): this thread is not the traced one, for
    ///   example in a child that was forked during the session.
    #[doc(alias = "KCOV_DISABLE")]
    #[doc(alias = "KCOV_IOC_DISABLE")]
    pub fn disable(self) -> Result<Recorded<M, D>, Error> {
        let mode = self.mode();
        // Ending restored the count from before the request.
        Recorded::after(self.active, mode)
    }
}

/// The records that a session has collected, in the buffer of its device or attachment.
#[derive(Debug)]
pub struct Recorded<M: Mode, D: Owner = Device> {
    owner: D,
    mode: M,
}

impl<M: Mode, D: Owner> Recorded<M, D> {
    /// Ends a session.
    pub(crate) fn after<E: End<D>>(active: Active<D, E>, mode: M) -> Result<Recorded<M, D>, Error> {
        let (ended, owner) = active.finish();
        ended.map(|()| Recorded { owner, mode })
    }

    /// The mode of the records.
    #[inline]
    pub fn mode(&self) -> M {
        self.mode
    }

    /// The records. Loads one word; the records are read in place.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        Trace::freeze(self.owner.buffer(SEAL), self.mode)
    }

    /// Returns what the session held: the device or the attachment, or the borrow of it.
    #[must_use]
    pub fn into_owner(self) -> D {
        self.owner
    }
}
