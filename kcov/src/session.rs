//! Tracing of one thread, from enable to disable.

use crate::active::{Active, End};
use crate::buffer::Width;
use crate::device::Device;
use crate::error::Error;
use crate::mode::{Mode, SEAL};
use crate::trace::{Completeness, Trace};
use std::borrow::Borrow;
use std::fmt;
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
pub struct Session<M: Mode, D: Borrow<Device> = Device> {
    active: Active<D, Local<M>>,
    this_thread: PhantomData<*mut ()>,
}

/// Tracing of the calling thread in one mode.
#[derive(Debug)]
struct Local<M>(M);

impl<M: Mode, D: Borrow<Device>> End<D> for Local<M> {
    fn end(&self, owner: &D) -> Result<(), Error> {
        let device = owner.borrow();
        let trace = Trace::freeze(device.buffer(), self.0);
        let mut count = trace.len() as u64;
        if let Completeness::Corrupt { count: stored } = trace.completeness() {
            // The start of the request is recorded: see `Device::begin`.
            device.set_count(Width::W64, 0);
            // Afterwards it is stored again, so that readers see a corrupt trace, not an empty one.
            count = stored;
        }
        device.end(self.0.kind(SEAL).width(device.buffer().width()), count)
    }
}

impl<M: Mode, D: Borrow<Device>> Session<M, D> {
    /// Wraps a device that was just enabled on this thread.
    pub(crate) fn enabled(device: D, mode: M) -> Session<M, D> {
        Session { active: Active { owner: device, how: Local(mode) }, this_thread: PhantomData }
    }

    /// The device through which this thread is traced.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.active.owner.borrow()
    }

    /// Forgets the records, so that the next one is the first.
    ///
    /// One store, no system call. Enabling needs no reset: the end of its system call is not part
    /// of the trace.
    #[inline]
    pub fn reset(&mut self) {
        let device = self.device();
        device.set_count(self.mode().kind(SEAL).width(device.buffer().width()), 0);
    }

    /// The records since the last reset. Loads one word; the records are read in place.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        Trace::freeze(self.device().buffer(), self.mode())
    }

    #[inline]
    fn mode(&self) -> M {
        self.active.how.0
    }
}

impl<'d, M: Mode> Session<M, &'d mut Device> {
    /// Ends tracing and returns the records since the last reset.
    ///
    /// # Errors
    ///
    /// - [`NotEnabled`](crate::ErrorKind::NotEnabled): this thread is not the traced one, for
    ///   example in a child that was forked during the session.
    #[doc(alias = "KCOV_DISABLE")]
    #[doc(alias = "KCOV_IOC_DISABLE")]
    pub fn disable(self) -> Result<Trace<'d, M>, Error> {
        let mode = self.mode();
        let (result, device) = self.active.finish();
        let device: &'d Device = device;
        // `end` restored the count from before the request.
        result.map(|()| Trace::freeze(device.buffer(), mode))
    }
}

impl<M: Mode> Session<M> {
    /// Ends tracing and returns the device. Read the [`trace`](Self::trace) first.
    ///
    /// # Errors
    ///
    /// - [`NotEnabled`](crate::ErrorKind::NotEnabled), with the device: this thread is not the
    ///   traced one, for example in a child that was forked during the session.
    #[doc(alias = "KCOV_DISABLE")]
    #[doc(alias = "KCOV_IOC_DISABLE")]
    pub fn disable(self) -> Result<Device, Refused> {
        match self.active.finish() {
            (Ok(()), device) => Ok(device),
            (Err(error), device) => Err(Refused::new(error, device)),
        }
    }
}

/// An operation that took a device by value and failed: the [`Error`], and the device, unchanged.
///
/// Converting it with `?` keeps the [`Error`] and drops the device.
#[derive(Debug)]
pub struct Refused {
    error: Error,
    device: Box<Device>,
}

impl Refused {
    pub(crate) fn new(error: Error, device: Device) -> Refused {
        Refused { error, device: Box::new(device) }
    }

    /// Makes a result from the device if `tried` succeeds; otherwise the error returns the device.
    pub(crate) fn unless<T, R>(
        device: Device,
        tried: impl FnOnce(&Device) -> Result<T, Error>,
        make: impl FnOnce(Device, T) -> R,
    ) -> Result<R, Refused> {
        match tried(&device) {
            Ok(result) => Ok(make(device, result)),
            Err(error) => Err(Refused::new(error, device)),
        }
    }

    /// The error that caused the refusal.
    #[must_use]
    pub fn error(&self) -> &Error {
        &self.error
    }

    /// Returns the device.
    #[must_use]
    pub fn into_device(self) -> Device {
        *self.device
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for Refused {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Error {
        refused.error
    }
}
