//! A kernel for tests: fake devices that follow the rules of Linux or NetBSD.
//!
//! With it, tests of an executor run under plain `cargo test`, on any machine and system. Open
//! devices with [`Kernel::builder`] and use them as usual. The closure of [`Kernel::call`] stands
//! for a system call and decides what it records:
//!
//! ```
//! use kcov::{fake::Kernel, mode::TracePc};
//!
//! let kernel = Kernel::linux();
//! let mut device = kernel.builder().open()?;
//! let session = device.enable(TracePc)?;
//! kernel.call(|trace| {
//!     trace.pc(0xffff_ffff_8100_0010);
//!     trace.pc(0xffff_ffff_8100_0020);
//! });
//! assert_eq!(session.disable()?.trace().len(), 2);
//! # Ok::<(), kcov::Error>(())
//! ```
//!
//! [`Kernel::fail`] makes the next request of a kind fail. [`Kernel::section`] is background work
//! for remote sessions. [`Kernel::store_counts`] acts as a target that overwrites buffers, and
//! [`Kernel::open_raw`] as another program that makes its own requests.
//!
//! As in a real kernel, the end of enabling and the start of disabling are recorded, the end of a
//! thread disables, full buffers drop records, and the driver trusts a count that a target wrote.
//! Where a real driver would then write in front of its buffer, the fake panics.
//!
//! Threads are the program's threads; one has ended when its handle was joined. Processes are not
//! modelled: a thread that borrows a [`ChildBuffer`](crate::ChildBuffer) can stand for a child.
//! Descriptors refer to /dev/null.
//!
//! The rules are those of the crate `kcov-model`.

mod raw;
mod record;
mod state;

pub use raw::RawDevice;
pub use record::{Recorder, Section, Work};

use crate::builder::Builder;
use crate::error::{Error, Operation};
use crate::sys::{File, Request};
use crate::system::{LINUX, NETBSD, System};
use kcov_model::{self as model, Access, Asked, D, Geometry, Instance, M, Outcome};
use kcov_sys::errno;
pub(crate) use state::Memory;
use state::State;
use std::fmt;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A kernel for tests. Clones refer to the same kernel.
#[derive(Clone)]
pub struct Kernel {
    system: &'static System,
    state: Arc<Mutex<State>>,
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Kernel").finish_non_exhaustive()
    }
}

impl Kernel {
    /// A kernel with the rules of Linux 7.3.
    #[must_use]
    pub fn linux() -> Kernel {
        Kernel { system: &LINUX, state: Arc::new(Mutex::new(State::linux(true))) }
    }

    /// A kernel with the rules of NetBSD 10 and with sources for ports 0 to 7 of bus 0.
    #[must_use]
    pub fn netbsd() -> Kernel {
        Kernel { system: &NETBSD, state: Arc::new(Mutex::new(State::netbsd())) }
    }

    /// Removes comparison mode, as with `CONFIG_KCOV_ENABLE_COMPARISONS=n` on Linux.
    ///
    /// # Panics
    ///
    /// If a device is open.
    #[must_use]
    pub fn without_comparisons(self) -> Kernel {
        assert_eq!(self.open_devices(), 0, "a kernel with open devices cannot change");
        if self.system.has_handles {
            *self.state() = State::linux(false);
        }
        self
    }

    /// Returns a builder for devices of this kernel. Paths are ignored.
    pub fn builder(&self) -> Builder {
        Builder::of_fake(self.clone())
    }

    /// Makes the next request of this kind fail with this errno of the system. Several calls queue
    /// up.
    pub fn fail(&self, operation: Operation, errno: i32) {
        self.state().orders.push((operation, errno));
    }

    /// Makes a system call on the calling thread: the records of `body` go to the buffer that the
    /// thread is traced into, if any.
    pub fn call<R>(&self, body: impl FnOnce(&mut Recorder) -> R) -> R {
        // Not under the lock, so `body` may make other calls.
        let thread = self.state().thread();
        body(&mut Recorder::of_thread(self.clone(), thread))
    }

    /// Starts a section of background work for a handle (Linux) or a source (NetBSD), on no
    /// particular thread. Dropping it ends the section.
    pub fn section(&self, work: impl Into<Work>) -> Section {
        Section::start(self.clone(), work.into())
    }

    /// Stores this value to the count word of every buffer, as a misbehaving target could.
    pub fn store_counts(&self, count: u64) {
        self.state().buffers().for_each(|memory| memory[0].store(count, Ordering::Relaxed));
    }

    /// Whether the calling thread is traced.
    #[must_use]
    pub fn is_traced(&self) -> bool {
        let mut state = self.state();
        let thread = state.thread();
        state.traced(thread).is_some()
    }

    /// The number of open devices.
    #[must_use]
    pub fn open_devices(&self) -> usize {
        self.state().open
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn open_file(&self) -> Result<File, Error> {
        self.open_descriptor().map(File::Fake)
    }

    fn open_descriptor(&self) -> Result<Descriptor, Error> {
        let refuse = |errno| Error::from_errno(self.system, Operation::Open, errno);
        self.state().obey(Operation::Open).map_err(refuse)?;
        #[cfg(unix)]
        let fd = std::fs::File::open("/dev/null")
            .map_err(|error| refuse(error.raw_os_error().unwrap_or(0)))?
            .into();
        let mut state = self.state();
        state.open += 1;
        let instance = state.driver.open();
        drop(state);
        Ok(Descriptor {
            open: Open { kernel: self.clone(), instance },
            #[cfg(unix)]
            fd,
        })
    }
}

/// A file descriptor of a fake kernel.
#[derive(Debug)]
pub(crate) struct Descriptor {
    open: Open,
    #[cfg(unix)]
    fd: std::os::fd::OwnedFd,
}

/// An open instance of a device, closed when dropped.
#[derive(Debug)]
struct Open {
    kernel: Kernel,
    instance: Instance,
}

impl Descriptor {
    pub(crate) fn system(&self) -> &'static System {
        self.open.kernel.system
    }

    /// Tells this kernel from all others for as long as the descriptor is open.
    pub(crate) fn kernel_id(&self) -> usize {
        Arc::as_ptr(&self.open.kernel.state).addr()
    }

    pub(crate) fn request(&self, request: Request<'_>) -> Result<(), i32> {
        let Open { kernel, instance } = &self.open;
        match request {
            Request::Enable(_) | Request::EnableRemote(_) => state::end_with_thread(&kernel.state),
            // The start of the request is the last thing recorded.
            Request::Disable => kernel.call(Recorder::request),
            _ => {}
        }
        // Requests that local and remote coverage share have two names.
        let is_attached = kernel.state().driver.buffer(*instance) != *instance;
        let operation = match request {
            Request::SetSize(..) => Some(Operation::SetSize),
            Request::Enable(_) if is_attached => Some(Operation::EnableRemote),
            Request::Enable(_) => Some(Operation::Enable),
            Request::Disable if is_attached => Some(Operation::DisableRemote),
            Request::Disable => Some(Operation::Disable),
            Request::EnableRemote(_) => Some(Operation::EnableRemote),
            Request::Attach(_) => Some(Operation::Attach),
            // No operation names it, so `fail` cannot.
            _ => None,
        };
        operation.map_or(Ok(()), |operation| kernel.state().obey(operation))?;
        let asked = request.in_model();
        self.ask(|thread| model::Operation::Ask { thread, descriptor: D(0), request: asked })?;
        if let Request::Enable(_) = request {
            // The end of the request is the first thing recorded.
            kernel.call(Recorder::request);
        }
        Ok(())
    }

    /// What the model says.
    fn ask(&self, operation: impl FnOnce(model::T) -> model::Operation) -> Result<(), i32> {
        let Open { kernel, instance } = &self.open;
        let mut state = kernel.state();
        let operation = &operation(state.thread());
        let asked = Asked { instance: *instance, access: Access::ReadWrite, operation };
        match state.driver.ask(&asked) {
            Outcome::Refused(errno) => {
                let linux = kernel.system.has_handles;
                Err(errno.number(if linux { errno::linux::ALL } else { errno::netbsd::ALL }))
            }
            _ => Ok(()),
        }
    }

    pub(crate) fn map(&self, bytes: usize) -> Result<Memory, i32> {
        let Open { kernel, instance } = &self.open;
        kernel.state().obey(Operation::Map)?;
        let geometry = Geometry::of(bytes as u64, true);
        self.ask(|thread| model::Operation::Map { thread, descriptor: D(0), map: M(0), geometry })?;
        let mut state = kernel.state();
        let buffer = state.driver.buffer(*instance);
        Ok(state.buffer(buffer))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.kernel.state().close(self.instance);
    }
}

#[cfg(unix)]
mod descriptor {
    use super::Descriptor;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    impl AsFd for Descriptor {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.fd.as_fd()
        }
    }

    /// Closes the instance, so the descriptor serves no more requests.
    impl From<Descriptor> for OwnedFd {
        fn from(descriptor: Descriptor) -> OwnedFd {
            descriptor.fd
        }
    }
}

#[cfg(test)]
mod tests;
