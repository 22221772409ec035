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

use super::RemoteSession;
use crate::buffer::Width;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{Mode, SEAL};
use crate::sys::Request;
use kcov_sys::linux::KCOV_TRACE_CMP;

impl Device {
    /// Starts collecting from background work, with an empty trace. The session borrows the device.
    ///
    /// Makes one system call, or more for [`Remote::any_common`]. A refused device loses its records;
    /// in a forked child, they are its parent's.
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
        Ok(RemoteSession::enabled(self, mode, Some(argument)))
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
        Ok(RemoteSession::enabled(self, mode, Some(argument)))
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

    pub(super) fn begin_remote(&self, argument: &Argument) -> Result<(), Error> {
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
