//! Coverage from work that other threads of the kernel do, on Linux.
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
//! use kcov::{Device, mode::TracePc, remote::{CommonHandle, Remote}};
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

use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::Mode;
use crate::sys;
use crate::trace::Trace;
use kcov_sys::linux::{
    KCOV_REMOTE_MAX_HANDLES, KCOV_SUBSYSTEM_COMMON, KCOV_SUBSYSTEM_USB, kcov_remote_arg,
    kcov_remote_handle,
};
use std::marker::PhantomData;
use std::mem;
use std::num::NonZeroU32;
use std::thread;
use std::time::{Duration, Instant};

/// Most global handles of one session.
pub const MAX_HANDLES: usize = KCOV_REMOTE_MAX_HANDLES as usize;

/// A part of the kernel that has global handles.
///
/// Kernels refuse the subsystems that they do not know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Subsystem(u8);

impl Subsystem {
    /// USB; the instance is the number of a bus.
    #[doc(alias = "KCOV_SUBSYSTEM_USB")]
    pub const USB: Subsystem = Subsystem((KCOV_SUBSYSTEM_USB >> 56) as u8);

    /// A subsystem by its number, for kernels newer than this crate.
    #[must_use]
    pub const fn new(number: u8) -> Subsystem {
        Subsystem(number)
    }

    /// The number, as it stands in the top byte of a handle.
    #[must_use]
    pub const fn number(self) -> u8 {
        self.0
    }
}

/// Names global background work: a subsystem and an instance of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GlobalHandle(u64);

impl GlobalHandle {
    /// The handle of an instance of a subsystem.
    #[must_use]
    pub const fn new(subsystem: Subsystem, instance: u32) -> GlobalHandle {
        GlobalHandle(kcov_remote_handle((subsystem.0 as u64) << 56, instance as u64))
    }

    /// The handle of a USB bus: its hub events and the completions of its requests.
    #[must_use]
    pub const fn usb(bus: u32) -> GlobalHandle {
        GlobalHandle::new(Subsystem::USB, bus)
    }

    /// The subsystem.
    #[must_use]
    pub const fn subsystem(self) -> Subsystem {
        Subsystem((self.0 >> 56) as u8)
    }

    /// The handle as the kernel takes it.
    #[must_use]
    pub const fn raw(self) -> u64 {
        self.0
    }
}

/// Names local background work: a number that is free in the whole system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommonHandle(NonZeroU32);

impl CommonHandle {
    /// The handle with that number.
    #[must_use]
    pub const fn new(instance: NonZeroU32) -> CommonHandle {
        CommonHandle(instance)
    }

    /// The handle that has the number of this process, which is one way to find a free one.
    #[must_use]
    pub fn of_process() -> CommonHandle {
        CommonHandle(NonZeroU32::new(std::process::id()).unwrap_or(NonZeroU32::MIN))
    }

    /// The handle as the kernel takes it.
    #[must_use]
    pub const fn raw(self) -> u64 {
        kcov_remote_handle(KCOV_SUBSYSTEM_COMMON, self.0.get() as u64)
    }
}

/// What background work to collect from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct Remote {
    area: Option<u32>,
    global: Vec<GlobalHandle>,
    common: Option<CommonHandle>,
}

impl Remote {
    /// Nothing yet.
    pub fn new() -> Remote {
        Remote::default()
    }

    /// Adds global work, up to [`MAX_HANDLES`] handles.
    pub fn global(mut self, handle: GlobalHandle) -> Remote {
        self.global.push(handle);
        self
    }

    /// Sets the handle of local work.
    pub fn common(mut self, handle: CommonHandle) -> Remote {
        self.common = Some(handle);
        self
    }

    /// Sets how many words one section can collect, at least 2; what it collects beyond is dropped.
    /// The default is the size of the device's buffer.
    pub fn area_words(mut self, words: u32) -> Remote {
        self.area = Some(words);
        self
    }

    fn has_unknown_subsystem(&self) -> bool {
        self.global.iter().any(|handle| handle.subsystem() != Subsystem::USB)
    }

    pub(crate) fn argument(
        &self,
        mode: u32,
        buffer_words: usize,
    ) -> Result<kcov_remote_arg<MAX_HANDLES>, Error> {
        let refuse = |kind| Err(Error::new(Operation::EnableRemote, kind));
        let area = match self.area {
            // A kernel allocates an area of size 0 with a warning, when a section starts.
            Some(words @ (0 | 1)) => {
                let error = Error::new(Operation::EnableRemote, ErrorKind::SizeOutOfLimits);
                return Err(error.with_limits(words.into(), 2..=u32::MAX.into()));
            }
            Some(words) => words,
            None => u32::try_from(buffer_words).unwrap_or(u32::MAX),
        };
        let mut handles = [0; MAX_HANDLES];
        let Some(used) = handles.get_mut(..self.global.len()) else {
            return refuse(ErrorKind::TooManyHandles);
        };
        for (raw, handle) in used.iter_mut().zip(&self.global) {
            *raw = handle.0;
        }
        Ok(kcov_remote_arg {
            trace_mode: mode,
            area_size: area,
            num_handles: self.global.len() as u32,
            _pad: 0,
            common_handle: self.common.map_or(0, CommonHandle::raw),
            handles,
        })
    }
}

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
        device.reset(mode);
        device.request_enable_remote(mode.any(), remote)?;
        Ok(RemoteSession { device, mode, this_thread: PhantomData })
    }

    /// Forgets the records. A section that ends at the same time may be lost in part or be kept.
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
        const LONGEST: Duration = Duration::from_millis(10);
        let start = Instant::now();
        let mut pause = Duration::from_micros(20);
        loop {
            let trace = self.trace();
            let left = limit.saturating_sub(start.elapsed());
            if trace.len() >= records || trace.is_truncated() || left.is_zero() {
                return trace;
            }
            thread::sleep(pause.min(left));
            pause = (pause * 2).min(LONGEST);
        }
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
        Ok(Trace::freeze(session.device.buffer(), session.mode))
    }
}

impl<M: Mode> Drop for RemoteSession<'_, M> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: the thread did not own the device any more.
        let _ = self.device.request_disable();
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

    fn request_enable_remote(
        &self,
        mode: crate::mode::AnyMode,
        remote: &Remote,
    ) -> Result<(), Error> {
        let refuse = |kind| Error::new(Operation::EnableRemote, kind);
        if !sys::HAS_REMOTE_HANDLES {
            return Err(refuse(ErrorKind::Unsupported));
        }
        let number = sys::number(mode).ok_or_else(|| refuse(ErrorKind::ModeNotSupported))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    const BUS: GlobalHandle = GlobalHandle::usb(3);

    #[test]
    fn handles_are_packed_as_the_header_says() {
        assert_eq!(BUS.raw(), 0x0100_0000_0000_0003);
        assert_eq!(GlobalHandle::new(Subsystem::new(0xff), u32::MAX).raw(), 0xff00_0000_ffff_ffff);
        assert_eq!(CommonHandle::new(NonZeroU32::MAX).raw(), 0xffff_ffff);
        assert_eq!(CommonHandle::of_process().raw(), u64::from(std::process::id()));
    }

    #[test]
    fn the_argument_counts_its_handles() {
        let common = CommonHandle::new(NonZeroU32::MIN);
        let remote = Remote::new().global(BUS).global(GlobalHandle::usb(4)).common(common);
        let argument = remote.argument(1, 512).unwrap();
        assert_eq!((argument.trace_mode, argument.area_size, argument.num_handles), (1, 512, 2));
        assert_eq!(argument.common_handle, 1);
        assert_eq!(argument.handles[..3], [0x0100_0000_0000_0003, 0x0100_0000_0000_0004, 0]);
    }

    #[test]
    fn what_the_kernel_would_refuse_or_choke_on_is_refused() {
        let many =
            (0..257).fold(Remote::new(), |remote, bus| remote.global(GlobalHandle::usb(bus)));
        assert_eq!(many.argument(0, 512).unwrap_err().kind(), ErrorKind::TooManyHandles);
        for words in [0, 1] {
            let error = Remote::new().area_words(words).argument(0, 512).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
        }
        assert_eq!(Remote::new().area_words(2).argument(0, 512).unwrap().area_size, 2);
    }
}
