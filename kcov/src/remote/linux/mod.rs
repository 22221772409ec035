//! Remote coverage on Linux: handles.
//!
//! Parts of the kernel mark sections of background work with a *handle*. A thread that enables
//! remote coverage names the handles that it wants. When a section with such a handle ends, the
//! kernel appends its records to the device's buffer.
//!
//! - A [`GlobalHandle`] names system-wide work, for example of a USB bus.
//! - A [`CommonHandle`] is a number that the caller chooses. Objects that the thread sets up while
//!   it is enabled inherit it, for example io_uring instances (Linux 7.2 and later) and vhost
//!   workers. Forked children of the thread also pass it on to objects that they set up.
//!
//! ```no_run
//! use kcov::{Device, mode::TracePc, remote::linux::Remote};
//! use std::time::{Duration, Instant};
//!
//! let mut device = Device::open()?;
//! let session = device.enable_remote(TracePc, &Remote::new().any_common())?;
//! // ... set up an io_uring instance with SQPOLL ...
//! let mark = session.mark();
//! // ... submit what this case submits, and wait for its completions ...
//! session.settle(Duration::from_millis(2), Instant::now() + Duration::from_secs(1));
//! println!("{} records", session.since(mark).map_or(0, |trace| trace.len()));
//! # Ok::<(), kcov::Error>(())
//! ```
//!
//! # Sections that end late
//!
//! The records of a section appear when it ends. One that ends after the next [mark](super::Mark)
//! counts for the next case. One that ends after [`disable`](RemoteSession::disable) or
//! [`restart`](RemoteSession::restart) is discarded by the kernel, even if the same handle is
//! enabled again by then.
//!
//! # Local and remote coverage at once
//!
//! Since Linux 7.2 a thread may have a [`Session`](crate::Session) on one device and a
//! [`RemoteSession`] on another. Before that, the second fails with
//! [`AlreadyEnabled`](ErrorKind::AlreadyEnabled), and a helper thread has to enable remote
//! coverage. Any thread can enable global handles, but the helper itself must set up the objects
//! that inherit a common handle.
//!
//! # References
//!
//! kcov.rst, "Remote coverage collection".

mod handle;

pub use handle::{CommonHandle, GlobalHandle, Remote};

pub(crate) use handle::Argument;

use super::{Mark, Start};
use crate::buffer::Width;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{Mode, SEAL};
use crate::owner::{Active, End, Owner};
use crate::session::Recorded;
use crate::sys::Request;
use crate::trace::Trace;
use kcov_sys::linux::KCOV_TRACE_CMP;
use std::marker::PhantomData;
use std::time::{Duration, Instant};

/// The device collects from background work for as long as this value lives. As with
/// [`Session`](crate::Session), `D` is `&mut Device` or [`Device`].
///
/// Dropping it disables and releases the handles. It cannot leave the thread that enabled, because
/// only that thread can disable, although the records come from other threads.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct RemoteSession<M: Mode, D: Owner = Device> {
    active: Active<D, Handles>,
    mode: M,
    start: Start,
    this_thread: PhantomData<*mut ()>,
}

/// The argument of the request, for restarts.
#[derive(Debug)]
struct Handles(Box<Argument>);

impl<D: Owner> End<D> for Handles {
    fn end(&self, owner: &D) -> Result<(), Error> {
        // Nothing of the request is recorded, and no section is appended after it.
        owner.device(SEAL).request_disable()
    }
}

impl<M: Mode, D: Owner> RemoteSession<M, D> {
    fn new(device: D, mode: M, argument: Box<Argument>) -> RemoteSession<M, D> {
        let active = Active { owner: device, how: Handles(argument) };
        RemoteSession { active, mode, start: Start::new(), this_thread: PhantomData }
    }

    /// The device that collects the records.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.active.owner.device(SEAL)
    }

    /// The common handle, if any. For [`Remote::any_common`], the one that was found.
    #[must_use]
    pub fn common_handle(&self) -> Option<CommonHandle> {
        CommonHandle::of_argument(&self.active.how.0)
    }

    super::reading!();

    /// Empties the buffer and collects from the same handles again. Sections that are running are
    /// discarded.
    ///
    /// Disables and enables, because the kernel could overwrite a 0 stored while it collects.
    /// Objects that inherited the common handle keep it.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable_remote`]. The session then collects no more records.
    pub fn restart(&mut self) -> Result<(), Error> {
        self.device().request_disable()?;
        self.start = Start::new();
        self.device().begin_remote(&self.active.how.0)
    }

    /// Ends collection, releases the handles and returns all records since the start, with the
    /// device.
    ///
    /// Sections that are still running are discarded: wait for them first.
    ///
    /// # Errors
    ///
    /// The error drops a device that the session owns.
    ///
    /// - [`NotEnabled`](ErrorKind::NotEnabled): this is a child that was forked during the session.
    pub fn disable(self) -> Result<Recorded<M, D>, Error> {
        Recorded::after(self.active, self.mode)
    }
}

impl Device {
    /// Starts collecting from background work, with an empty trace. The session borrows the device.
    ///
    /// Makes one system call, or more for [`Remote::any_common`].
    ///
    /// # Errors
    ///
    /// - [`HandleInUse`](ErrorKind::HandleInUse): another device, of this process or another one,
    ///   collects from a handle, or a handle is in `remote` twice.
    /// - [`AlreadyEnabled`](ErrorKind::AlreadyEnabled): a thread has enabled this device, or this
    ///   thread has a remote session already (before Linux 7.2: any session).
    /// - [`UnknownSubsystem`](ErrorKind::UnknownSubsystem): a handle's subsystem is unknown.
    /// - [`TooManyHandles`](ErrorKind::TooManyHandles),
    ///   [`SizeOutOfLimits`](ErrorKind::SizeOutOfLimits): `remote` exceeds the kernel's limits.
    /// - [`ModeNotBuiltIn`](ErrorKind::ModeNotBuiltIn), [`OutOfMemory`](ErrorKind::OutOfMemory).
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
    ) -> Result<RemoteSession<M, &mut Device>, Error> {
        let argument = self.begin_remote_mode(mode, remote)?;
        Ok(RemoteSession::new(self, mode, argument))
    }

    /// Starts collecting as [`enable_remote`](Self::enable_remote). The session owns the device.
    ///
    /// # Errors
    ///
    /// Same as [`enable_remote`](Self::enable_remote). The error drops the device.
    pub fn into_remote_session<M: Mode>(
        self,
        mode: M,
        remote: &Remote,
    ) -> Result<RemoteSession<M>, Error> {
        let argument = self.begin_remote_mode(mode, remote)?;
        Ok(RemoteSession::new(self, mode, argument))
    }

    fn begin_remote_mode<M: Mode>(&self, mode: M, remote: &Remote) -> Result<Box<Argument>, Error> {
        /// Random handles do not collide this often.
        const TRIES: usize = 16;
        let refuse = |kind| Error::new(Operation::EnableRemote, kind);
        if !self.system().has_handles {
            return Err(refuse(ErrorKind::Unsupported));
        }
        let number = self.system().number(mode.kind(SEAL), true).map_err(refuse)?;
        let mut argument =
            Box::new(remote.argument(number, self.words(), self.buffer().width())?);
        let mut tries = if remote.takes_any_common() { TRIES } else { 1 };
        loop {
            if remote.takes_any_common() {
                argument.common_handle = CommonHandle::random().raw();
            }
            tries -= 1;
            match self.begin_remote(&argument) {
                Err(error) if error.kind() == ErrorKind::HandleInUse && tries > 0 => {}
                result => return result.map(|()| argument),
            }
        }
    }

    fn begin_remote(&self, argument: &Argument) -> Result<(), Error> {
        let compares = argument.trace_mode == KCOV_TRACE_CMP;
        let width = if compares { Width::W64 } else { self.buffer().width() };
        let begun = self.begin(Operation::EnableRemote, width, |file| {
            file.request(Request::EnableRemote(argument))
        });
        begun.map_err(|error| {
            // One errno covers both errors; a handle that this crate does not know explains it.
            let explained = error.kind() == ErrorKind::AlreadyEnabled
                && error.raw_os_error() == Some(crate::error::linux::EINVAL)
                && handle::has_unknown_subsystem(argument);
            if explained { error.with_kind(ErrorKind::UnknownSubsystem) } else { error }
        })
    }
}
