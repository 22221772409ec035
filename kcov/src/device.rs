//! The opened, sized and mapped device.

use crate::buffer::{Buffer, Width};
use crate::builder::Builder;
use crate::child::ChildBuffer;
use crate::error::{Error, Operation};
use crate::mode::{Mode, SEAL};
use crate::session::{Refused, Session};
use crate::sys::{File, Identity, Mapping};
use crate::system::System;
use std::mem::ManuallyDrop;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

/// An open kcov device with its buffer mapped. At most one thread at a time is traced into it.
///
/// A device may be moved and shared between threads; only the [`Session`] is tied to a thread.
///
/// ```no_run
/// use kcov::{BufferSize, Device, mode::TraceCmp};
///
/// let size = BufferSize::records(100_000, TraceCmp).clamped();
/// let mut device = Device::builder().size(size).min_fd(200).open()?;
/// let session = device.enable(TraceCmp)?;
/// let _ = std::fs::metadata("/");
/// session.disable()?.iter().for_each(|comparison| println!("{comparison:?}"));
/// # Ok::<(), kcov::Error>(())
/// ```
///
/// # Leaked sessions
///
/// Dropping a device whose session was leaked disables it first, but only on the traced thread. If
/// you must leak a session, drop the device on the same thread. On both systems, a thread traced
/// through a descriptor that is gone stays traced until it ends, and no device can trace it again.
///
/// A thread that ends while it is traced frees the device. Linux and NetBSD 9 do so at once. NetBSD
/// 10 may wait until the process next starts, awaits or ends a thread; until then enabling fails
/// with [`AlreadyEnabled`](crate::ErrorKind::AlreadyEnabled).
///
/// # Targets that touch the device
///
/// On Linux, whoever truncates the kcov file makes the next access to any kcov mapping on the
/// machine raise `SIGBUS`. A target that closes descriptors or unmaps memory of others does similar
/// harm. [`recover`](Self::recover) repairs a device before you use it again; [`Builder`] has
/// methods that keep the device out of the target's way.
#[derive(Debug)]
pub struct Device {
    /// Valid as long as the mapping is; lent out only while the device is borrowed.
    buffer: Buffer<'static>,
    /// The bytes of the count word if a session was enabled through this value and not yet
    /// disabled, else 0.
    pub(crate) enabled: AtomicUsize,
    /// Whether the pages are writable only during sessions.
    pub(crate) write_protected: bool,
    pub(crate) parts: Parts,
}

/// The parts of a dismantled device.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) mapping: Mapping,
    pub(crate) file: File,
    /// How to open it again; `None` for adopted devices.
    pub(crate) builder: Option<Builder>,
    /// The stamp stored in the last word of the buffer. A record may have overwritten it.
    pub(crate) stamp: u64,
    /// Identifies the file, in case another file takes its descriptor number.
    pub(crate) identity: Option<Identity>,
}

impl Device {
    /// Opens the system's device, `/sys/kernel/debug/kcov` on Linux and `/dev/kcov` on NetBSD, with
    /// a buffer of the default size.
    ///
    /// # Errors
    ///
    /// Same as [`Builder::open`].
    pub fn open() -> Result<Device, Error> {
        Device::builder().open()
    }

    /// Returns a builder for the system's device with the default size. It can change both.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Starts tracing the calling thread, with an empty trace. The session borrows the device.
    ///
    /// The kernel records only what the thread itself executes: no interrupts, no other threads, no
    /// child processes. Tracing survives execve(2) and continues into the same buffer.
    ///
    /// Makes one system call, or three with [`write_protected`](Builder::write_protected).
    ///
    /// # Errors
    ///
    /// - [`AlreadyEnabled`](crate::ErrorKind::AlreadyEnabled): a thread has enabled this device, or
    ///   this thread is traced through another device.
    /// - [`ModeNotBuiltIn`](crate::ErrorKind::ModeNotBuiltIn): the kernel was built without the
    ///   mode.
    ///
    /// Success or failure, the count word is 0 afterwards.
    ///
    /// # Platforms
    ///
    /// `KCOV_ENABLE` on Linux, `KCOV_IOC_ENABLE` on NetBSD.
    #[doc(alias = "KCOV_ENABLE")]
    #[doc(alias = "KCOV_IOC_ENABLE")]
    pub fn enable<M: Mode>(&mut self, mode: M) -> Result<Session<M, &mut Device>, Error> {
        self.begin_mode(mode)?;
        Ok(Session::enabled(self, mode))
    }

    /// Starts tracing the calling thread as [`enable`](Self::enable) does. The session owns the
    /// device, so one struct can hold it.
    ///
    /// # Errors
    ///
    /// Same as [`enable`](Self::enable). The error returns the device.
    pub fn into_session<M: Mode>(self, mode: M) -> Result<Session<M>, Refused> {
        Refused::unless(
            self,
            |device| device.begin_mode(mode),
            |device, ()| Session::enabled(device, mode),
        )
    }

    /// Empties the buffer for child processes to fill, in one mode. The result borrows the device.
    ///
    /// Enables the device for a moment, which proves that nothing else is traced into the buffer
    /// and that the kernel has the mode. On Linux, a thread that is traced through another device
    /// proves only the first; then a child's enabling may fail with
    /// [`ModeNotBuiltIn`](crate::ErrorKind::ModeNotBuiltIn).
    ///
    /// # Errors
    ///
    /// Same as [`enable`](Self::enable); on Linux this thread may be traced through another device.
    pub fn child_buffer<M: Mode>(&mut self, mode: M) -> Result<ChildBuffer<M, &mut Device>, Error> {
        self.prove_free(mode)?;
        Ok(ChildBuffer::new(self, mode))
    }

    /// Empties the buffer for child processes as [`child_buffer`](Self::child_buffer) does. The
    /// result owns the device.
    ///
    /// # Errors
    ///
    /// Same as [`child_buffer`](Self::child_buffer). The error returns the device.
    pub fn into_child_buffer<M: Mode>(self, mode: M) -> Result<ChildBuffer<M>, Refused> {
        Refused::unless(
            self,
            |device| device.prove_free(mode),
            |device, ()| ChildBuffer::new(device, mode),
        )
    }

    /// Size of the buffer in kernel words, including the count word.
    pub fn words(&self) -> usize {
        self.buffer.bytes() / self.buffer.width().bytes()
    }

    /// Number of records that the buffer can hold in this mode.
    pub fn capacity<M: Mode>(&self, mode: M) -> usize {
        mode.kind(SEAL).capacity(self.buffer)
    }

    pub(crate) fn new(parts: Parts, bytes: usize, width: Width) -> Device {
        // SAFETY: the mapping is aligned, at least a page and `bytes` long, and this crate accesses
        // it only through `Buffer`. Every view borrows the device, which drops its mapping last.
        let buffer = unsafe { Buffer::new(parts.mapping.start(), bytes, width) };
        Device { buffer, enabled: AtomicUsize::new(0), write_protected: false, parts }
    }

    /// Makes the buffer writable only during sessions, from now on.
    pub(crate) fn write_protect(&mut self) -> Result<(), Error> {
        self.write_protected = true;
        self.set_writable(false)
    }

    /// Takes the device apart without making a request.
    pub(crate) fn into_parts(self) -> Parts {
        let device = ManuallyDrop::new(self);
        // SAFETY: `ManuallyDrop` prevents a second drop and `device` is not used again: one move.
        unsafe { ptr::read(&raw const device.parts) }
    }

    pub(crate) fn file(&self) -> &File {
        &self.parts.file
    }

    pub(crate) fn system(&self) -> &'static System {
        self.file().system()
    }

    #[inline]
    pub(crate) fn buffer(&self) -> Buffer<'_> {
        self.buffer
    }

    /// Stores the count word, with write access if the buffer has a protection key.
    #[inline]
    pub(crate) fn set_count(&self, width: Width, count: u64) {
        self.write(|| self.buffer.set_count(width, count));
    }

    /// Runs `store`, with write access if the buffer has a protection key.
    #[inline]
    pub(crate) fn write(&self, store: impl FnOnce()) {
        #[cfg(feature = "pkeys")]
        if let Some(key) = self.parts.mapping.key() {
            return key.write(store);
        }
        store();
    }

    /// Makes the buffer writable or read-only, if write protection was requested.
    pub(crate) fn set_writable(&self, writable: bool) -> Result<(), Error> {
        if !self.write_protected {
            return Ok(());
        }
        let set = self.parts.mapping.set_writable(writable);
        set.map_err(self.file().error(Operation::Protect))
    }

    fn begin_mode<M: Mode>(&self, mode: M) -> Result<(), Error> {
        let kind = mode.kind(SEAL);
        let number = self.system().number(kind, false);
        let number = number.map_err(|kind| Error::new(Operation::Enable, kind))?;
        self.begin(Operation::Enable, kind.width(self.buffer.width()), |file| file.enable(number))
    }

    /// Begins a session of any kind.
    pub(crate) fn begin(
        &self,
        operation: Operation,
        width: Width,
        request: impl FnOnce(&File) -> Result<(), i32>,
    ) -> Result<(), Error> {
        self.set_writable(true)?;
        // With a count that somebody else has left, some kernels write in front of the buffer.
        self.set_count(Width::W64, 0);
        if let Err(errno) = request(self.file()) {
            // Report the first failure, not this one.
            let _ = self.set_writable(false);
            return Err(self.file().error(operation)(errno));
        }
        self.enabled.store(width.bytes(), Ordering::Relaxed);
        // The end of the request is recorded too.
        self.set_count(Width::W64, 0);
        Ok(())
    }

    /// Ends a session and stores `count`, for readers in other processes.
    pub(crate) fn end(&self, width: Width, count: u64) -> Result<(), Error> {
        self.request_disable()?;
        self.set_count(width, count);
        self.set_writable(false)
    }

    pub(crate) fn request_disable(&self) -> Result<(), Error> {
        self.file().disable().map_err(self.file().error(Operation::Disable))?;
        self.enabled.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Proves that nothing is traced into the buffer, and empties it.
    pub(crate) fn prove_free<M: Mode>(&self, mode: M) -> Result<(), Error> {
        if self.enabled.load(Ordering::Relaxed) != 0 {
            // A session was leaked. If it is another thread's, enabling will be refused. A refusal
            // may have made the pages read-only.
            self.set_writable(true)?;
            self.set_count(Width::W64, 0);
            let _ = self.request_disable();
        }
        match self.begin_mode(mode) {
            Ok(()) => self.end(Width::W64, 0),
            // The driver checks the device before the thread, so the device is free.
            Err(error)
                if error
                    .raw_os_error()
                    .is_some_and(|errno| self.system().thread_is_busy == Some(errno)) =>
            {
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        let width = match *self.enabled.get_mut() {
            0 => return,
            4 => Width::W32,
            _ => Width::W64,
        };
        // A session was leaked. On another thread, or in a forked child, the driver refuses the
        // request and changes nothing, so keep the records. The start of the request is recorded:
        // clear a corrupt count first, as `begin` does.
        #[cfg(feature = "pkeys")]
        self.allow_reading();
        let _ = self.set_writable(true);
        self.write(|| self.buffer.clear_invalid_count(width));
        let _ = self.request_disable();
    }
}

#[cfg(unix)]
mod descriptor {
    use super::Device;
    use std::os::fd::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};

    impl AsFd for Device {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.file().as_fd()
        }
    }

    impl AsRawFd for Device {
        fn as_raw_fd(&self) -> RawFd {
            self.as_fd().as_raw_fd()
        }
    }

    /// Unmaps the buffer and gives the descriptor away, without disabling.
    impl From<Device> for OwnedFd {
        fn from(device: Device) -> OwnedFd {
            device.into_parts().file.into()
        }
    }

    /// Same as `OwnedFd::from`.
    impl IntoRawFd for Device {
        fn into_raw_fd(self) -> RawFd {
            OwnedFd::from(self).into_raw_fd()
        }
    }
}
