//! Remote coverage on Linux: handles.
//!
//! Parts of the kernel mark sections of background work with a *handle*. A thread that enables
//! remote coverage names the handles whose sections it wants; when a marked section ends, its
//! records are appended to the device's buffer.
//!
//! - A [`GlobalHandle`] names work of the whole system, for example that of a USB bus.
//! - A [`CommonHandle`] is a number of the caller's choice. What the thread sets up while it is
//!   enabled inherits it: io_uring instances (Linux 7.2 and later) and vhost workers for example.
//!
//! ```no_run
//! use kcov::{Device, mode::TracePc, remote::linux::{CommonHandle, Remote}};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), kcov::Error> {
//! let mut device = Device::open()?;
//! let remote = Remote::new().common(CommonHandle::of_process());
//! let session = device.enable_remote(TracePc, &remote)?;
//! // … make the kernel work in the background …
//! for pc in session.wait(Duration::from_secs(1)) {
//!     println!("{pc}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Local and remote coverage at once
//!
//! Since Linux 7.2 a thread may have a [`Session`](crate::Session) on one device and a
//! [`RemoteSession`] on another. Before, the second fails with
//! [`AlreadyEnabled`](ErrorKind::AlreadyEnabled). What works everywhere is a helper thread: it
//! enables remote coverage, tells the first thread to go on, and disables when it is told to. Global
//! handles do not mind which thread enables. A common handle is inherited from the thread that
//! enabled, so there the helper must set up the instances that it is meant for.
//!
//! # Platforms
//!
//! Linux. Elsewhere [`Device::enable_remote`](crate::Device::enable_remote) fails with
//! [`Unsupported`](ErrorKind::Unsupported).
//!
//! # References
//!
//! kcov.rst, "Remote coverage collection".

mod handle;

pub use handle::{CommonHandle, GlobalHandle, MAX_HANDLES, Remote, Subsystem};

use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{AnyMode, Mode};
use crate::sys;
use crate::trace::Trace;
use std::marker::PhantomData;
use std::mem;
use std::time::Duration;

/// The device collects from background work for as long as this value lives.
///
/// Dropping it disables and releases the handles. It stays in the thread that enabled, as the
/// kernel lets no other one disable, although the records are of other threads.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct RemoteSession<'d, M: Mode> {
    device: &'d Device,
    mode: M,
    this_thread: PhantomData<*mut ()>,
}

impl<'d, M: Mode> RemoteSession<'d, M> {
    pub(crate) fn enable(
        device: &'d Device,
        mode: M,
        remote: &Remote,
    ) -> Result<RemoteSession<'d, M>, Error> {
        device.unprotect()?;
        device.reset(mode);
        if let Err(error) = device.request_enable_remote(mode.any(), remote) {
            device.protect()?;
            return Err(error);
        }
        Ok(RemoteSession { device, mode, this_thread: PhantomData })
    }

    /// Forgets the records, unless a section ends at the same time: the kernel then stores the count
    /// that it has read before, and the section's, so all are there again.
    #[inline]
    pub fn reset(&mut self) {
        self.device.reset(self.mode);
    }

    /// The records of the sections that have ended since the last reset. More may come.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        Trace::freeze(self.device.buffer(), self.mode)
    }

    /// Waits until there is a record, at most for `limit`.
    ///
    /// The kernel tells nobody when a section ends, so this looks again and again, at growing
    /// intervals of up to 10 ms. An empty trace means that none came in time.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Trace<'_, M> {
        self.wait_for(1, limit)
    }

    /// Waits until there are `records` records or the buffer is full, at most for `limit`.
    #[must_use]
    pub fn wait_for(&self, records: usize, limit: Duration) -> Trace<'_, M> {
        super::wait_for(|| self.trace(), records, limit)
    }

    /// Ends collection, releases the handles and gives the records since the last reset.
    ///
    /// What sections collected that are still running is discarded: wait for them first.
    ///
    /// # Errors
    ///
    /// - [`NotEnabled`](ErrorKind::NotEnabled): this is a child that was forked during the session.
    pub fn disable(self) -> Result<Trace<'d, M>, Error> {
        let session = mem::ManuallyDrop::new(self);
        session.device.request_disable()?;
        // Unlike in a local session, nothing of the request is recorded, and no section is
        // appended after it.
        session.device.protect()?;
        Ok(Trace::freeze(session.device.buffer(), session.mode))
    }
}

impl<M: Mode> Drop for RemoteSession<'_, M> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: the thread did not own the device any more.
        let _ = self.device.request_disable().and_then(|()| self.device.protect());
    }
}

impl Device {
    /// Starts collecting from background work, with an empty trace.
    ///
    /// # Errors
    ///
    /// - [`HandleInUse`](ErrorKind::HandleInUse): a handle is collected from by another device, of
    ///   this process or another one, or stands twice in `remote`.
    /// - [`AlreadyEnabled`](ErrorKind::AlreadyEnabled): this device is enabled by some thread, or
    ///   this thread has a remote session already (before Linux 7.2: any session).
    /// - [`UnknownSubsystem`](ErrorKind::UnknownSubsystem): the kernel does not know a handle.
    /// - [`TooManyHandles`](ErrorKind::TooManyHandles),
    ///   [`SizeOutOfLimits`](ErrorKind::SizeOutOfLimits): `remote` is beyond the kernel's limits.
    /// - [`ModeNotBuiltIn`](ErrorKind::ModeNotBuiltIn),
    ///   [`ModeNotSupported`](ErrorKind::ModeNotSupported), [`OutOfMemory`](ErrorKind::OutOfMemory).
    /// - [`Unsupported`](ErrorKind::Unsupported): not Linux.
    ///
    /// # Platforms
    ///
    /// `KCOV_REMOTE_ENABLE` on Linux.
    #[doc(alias = "KCOV_REMOTE_ENABLE")]
    pub fn enable_remote<M: Mode>(
        &mut self,
        mode: M,
        remote: &Remote,
    ) -> Result<RemoteSession<'_, M>, Error> {
        RemoteSession::enable(self, mode, remote)
    }

    fn request_enable_remote(&self, mode: AnyMode, remote: &Remote) -> Result<(), Error> {
        let refuse = |kind| Error::new(Operation::EnableRemote, kind);
        if !sys::HAS_REMOTE_HANDLES {
            return Err(refuse(ErrorKind::Unsupported));
        }
        // What is recorded once is proposed for a thread's own coverage only.
        let unique = matches!(mode, AnyMode::UniqPc(_) | AnyMode::UniqCmp(_));
        let number = sys::number(mode)
            .filter(|_| !unique)
            .ok_or_else(|| refuse(ErrorKind::ModeNotSupported))?;
        let argument = remote.argument(number, self.words())?;
        sys::enable_remote(self.file(), &argument).map_err(|errno| {
            let error = Error::from_errno(Operation::EnableRemote, errno);
            // The kernel has one errno for both; a handle that this crate does not know explains it.
            if errno == sys::INVALID && remote.has_unknown_subsystem() {
                error.with_kind(ErrorKind::UnknownSubsystem)
            } else {
                error
            }
        })?;
        self.mark_enabled();
        Ok(())
    }
}
