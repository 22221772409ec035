//! The opened, sized and mapped device.

use crate::buffer::{Buffer, Width};
use crate::builder::Builder;
use crate::child::ChildBuffer;
use crate::error::{Error, Operation};
use crate::mode::{Mode, SEAL};
use crate::session::Session;
use crate::sys::{File, Mapping, Request};
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
/// session.disable()?.trace().iter().for_each(|comparison| println!("{comparison:?}"));
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
/// harm. [`Builder`] has methods that keep the device out of the target's way,
/// [`check_readable`](Self::check_readable) tells whether the buffer is still there, and
/// [`abandon`](Self::abandon) gives up a device that is not.
#[derive(Debug)]
pub struct Device {
    open: Open,
}

/// An open device, which disables a leaked session when it is dropped.
#[derive(Debug)]
struct Open {
    /// Valid as long as the mapping is; lent out only while the device is borrowed.
    buffer: Buffer<'static>,
    /// The bytes of the count word if a session was enabled through this value and not yet
    /// disabled, else 0.
    enabled: AtomicUsize,
    parts: Parts,
}

/// The parts of a dismantled device.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) mapping: Mapping,
    pub(crate) file: File,
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
    /// Makes one system call.
    ///
    /// # Errors
    ///
    /// - [`AlreadyEnabled`](crate::ErrorKind::AlreadyEnabled): a thread has enabled this device, or
    ///   this thread is traced through another device.
    /// - [`ModeNotBuiltIn`](crate::ErrorKind::ModeNotBuiltIn): the kernel was built without the
    ///   mode.
    ///
    /// A refused device keeps its records: another thread may be traced into the buffer.
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
    /// Same as [`enable`](Self::enable). The error drops the device.
    pub fn into_session<M: Mode>(self, mode: M) -> Result<Session<M>, Error> {
        self.begin_mode(mode)?;
        Ok(Session::enabled(self, mode))
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
    /// Same as [`child_buffer`](Self::child_buffer). The error drops the device.
    pub fn into_child_buffer<M: Mode>(self, mode: M) -> Result<ChildBuffer<M>, Error> {
        self.prove_free(mode)?;
        Ok(ChildBuffer::new(self, mode))
    }

    /// Checks that the whole buffer can still be read: that no page was unmapped, or taken away by
    /// truncation. Another mapping in its place passes.
    ///
    /// The kernel does the reading, so it fails where this process would fault. It makes no request
    /// and changes nothing. It takes three system calls, and two more for each 512 pages.
    ///
    /// # Errors
    ///
    /// - [`BufferLost`](crate::ErrorKind::BufferLost): a page cannot be read.
    /// - [`DescriptorOutOfLimits`](crate::ErrorKind::DescriptorOutOfLimits): the check needs two
    ///   descriptors for a moment.
    pub fn check_readable(&self) -> Result<(), Error> {
        self.check_first(self.open.buffer.bytes())
    }

    /// Gives the device up and leaves its descriptor and its mapping exactly as they are, for when
    /// a target may have replaced either. Open a new device with the builder.
    ///
    /// This makes no system call. It costs a descriptor number, the addresses of the buffer, and
    /// the kernel's memory of the buffer until the process ends. A thread that is traced through
    /// the device stays traced until it ends, so continue on another thread.
    ///
    /// Leaking a value that owns a device, such as a [`Session`], with [`std::mem::forget`] has the
    /// same effect.
    pub fn abandon(self) {
        let Parts { mapping, file } = self.into_parts();
        std::mem::forget((mapping, file));
    }

    /// Size of the buffer in kernel words, including the count word.
    pub fn words(&self) -> usize {
        self.open.buffer.bytes() / self.open.buffer.width().bytes()
    }

    /// Number of records that the buffer can hold in this mode.
    pub fn capacity<M: Mode>(&self, mode: M) -> usize {
        mode.kind(SEAL).capacity(self.open.buffer)
    }

    pub(crate) fn new(parts: Parts, bytes: usize, width: Width) -> Device {
        // SAFETY: the mapping is aligned, at least a page and `bytes` long, and this crate accesses
        // it only through `Buffer`. Every view borrows the device, which drops its mapping last.
        let buffer = unsafe { Buffer::new(parts.mapping.start(), bytes, width) };
        Device { open: Open { buffer, enabled: AtomicUsize::new(0), parts } }
    }

    /// Takes the device apart without making a request.
    pub(crate) fn into_parts(self) -> Parts {
        let device = ManuallyDrop::new(self);
        // SAFETY: `ManuallyDrop` prevents a second drop and `device` is not used again: one move.
        unsafe { ptr::read(&raw const device.open.parts) }
    }

    pub(crate) fn file(&self) -> &File {
        &self.open.parts.file
    }

    pub(crate) fn system(&self) -> &'static System {
        self.file().system()
    }

    #[inline]
    pub(crate) fn buffer(&self) -> Buffer<'_> {
        self.open.buffer
    }

    /// Checks that the first `bytes` bytes of the buffer can be read.
    pub(crate) fn check_first(&self, bytes: usize) -> Result<(), Error> {
        self.open.parts.mapping.check(bytes).map_err(self.file().error(Operation::Check))
    }

    pub(crate) fn begin_mode<M: Mode>(&self, mode: M) -> Result<(), Error> {
        let kind = mode.kind(SEAL);
        let number = self.system().number(kind, false);
        let number = number.map_err(|kind| Error::new(Operation::Enable, kind))?;
        let width = kind.width(self.open.buffer.width());
        let count = self.open.buffer.count(width);
        let is_beyond = self.open.hide_if_beyond(width, count);
        let enable = |file: &File| file.request(Request::Enable(number));
        let begun = self.request_begin(Operation::Enable, width, enable);
        if begun.is_err() && is_beyond {
            self.open.buffer.set_count(width, count);
        }
        begun
    }

    /// Begins a session of another kind. Empties the buffer even if the request is refused.
    pub(crate) fn begin(
        &self,
        operation: Operation,
        width: Width,
        request: impl FnOnce(&File) -> Result<(), i32>,
    ) -> Result<(), Error> {
        // A section that appends to a count from before the request would make old records appear.
        self.open.buffer.set_count(Width::W64, 0);
        self.request_begin(operation, width, request)
    }

    fn request_begin(
        &self,
        operation: Operation,
        width: Width,
        request: impl FnOnce(&File) -> Result<(), i32>,
    ) -> Result<(), Error> {
        request(self.file()).map_err(self.file().error(operation))?;
        self.open.enabled.store(width.bytes(), Ordering::Relaxed);
        // The end of the request is recorded too.
        self.open.buffer.set_count(Width::W64, 0);
        Ok(())
    }

    pub(crate) fn request_disable(&self) -> Result<(), Error> {
        self.open.request_disable()
    }

    /// Disables, and keeps the trace as it is.
    pub(crate) fn end(&self, width: Width) -> Result<(), Error> {
        self.open.end(width)
    }

    /// Proves that nothing is traced into the buffer, and empties it.
    pub(crate) fn prove_free<M: Mode>(&self, mode: M) -> Result<(), Error> {
        // If another thread leaked a session, enabling will be refused.
        self.open.end_leaked();
        let busy = self.system().thread_is_busy;
        match self.begin_mode(mode) {
            Ok(()) => self.request_disable()?,
            // The driver checks the device before the thread, so the device is free.
            Err(error) if busy.is_some() && error.raw_os_error() == busy => {}
            Err(error) => return Err(error),
        }
        self.open.buffer.set_count(Width::W64, 0);
        Ok(())
    }
}

impl Open {
    fn request_disable(&self) -> Result<(), Error> {
        let file = &self.parts.file;
        file.request(Request::Disable).map_err(file.error(Operation::Disable))?;
        self.enabled.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn end(&self, width: Width) -> Result<(), Error> {
        // Only the count word: a child may have no other page. See `Builder::not_inherited`.
        let count = self.buffer.count(width);
        let is_beyond = self.hide_if_beyond(width, count);
        let ended = self.request_disable();
        // On another thread, or in a forked child, the driver refuses the request and changes
        // nothing; the traced thread may be counting. A corrupt trace must not look empty.
        if ended.is_ok() || is_beyond {
            self.buffer.set_count(width, count);
        }
        ended
    }

    /// Stores 0 in place of a count that no driver stores, and returns whether it did. Requests are
    /// recorded, and with such a count some kernels write in front of the buffer.
    fn hide_if_beyond(&self, width: Width, count: u64) -> bool {
        let is_beyond = count > (self.buffer.bytes() / width.bytes()) as u64;
        if is_beyond {
            self.buffer.set_count(width, 0);
        }
        is_beyond
    }

    /// Ends a session that was leaked. On another thread than its own, the driver refuses.
    fn end_leaked(&self) {
        let width = match self.enabled.load(Ordering::Relaxed) {
            0 => return,
            4 => Width::W32,
            _ => Width::W64,
        };
        let _ = self.end(width);
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.end_leaked();
    }
}

#[cfg(unix)]
mod descriptor {
    use super::{Device, Parts};
    use crate::buffer::Width;
    use crate::error::{Error, ErrorKind, Operation};
    use crate::sys::{File, Mapping, Place, Request};
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    impl Device {
        /// Takes over a descriptor that somebody else opened and sized, for example one that was
        /// inherited or passed over a socket, and maps its buffer of `words` kernel words.
        ///
        /// It stays close-on-exec or not, as it is. If somebody has enabled the device, enabling
        /// fails with [`AlreadyEnabled`](ErrorKind::AlreadyEnabled).
        ///
        /// # Errors
        ///
        /// - [`NotKcov`](ErrorKind::NotKcov): the file supports no kcov request.
        /// - [`Other`](ErrorKind::Other), [`OutOfMemory`](ErrorKind::OutOfMemory): the device has
        ///   another size, or none yet, or the kernel could not map the buffer.
        ///
        /// # Safety
        ///
        /// The caller must ensure that the descriptor is a kcov device: another driver may treat
        /// the integer argument of a request as a pointer. The caller must also ensure that it was
        /// sized to `words` words: on NetBSD, a smaller `words` would map only part of the buffer, and
        /// a device that is attached to a source would map the source's. As long as the device or a
        /// value that owns or borrows it lives, nobody may enable it through another descriptor: the
        /// records would be read in a mode that is not theirs.
        pub unsafe fn adopt(fd: OwnedFd, words: usize) -> Result<Device, Error> {
            let file = File::Kernel(fd, None);
            // Drivers always refuse a size of 0; the errno tells whether they know the request.
            let is_its = |width: &&Width| {
                file.request(Request::SetSize(**width, 0)) != Err(file.system().wrong_width)
            };
            let refuse = |kind| Error::new(Operation::Map, kind);
            let width = file.system().widths.iter().find(is_its);
            let width = *width.ok_or(refuse(ErrorKind::NotKcov))?;
            // NetBSD 9 accepts a mapping of 0 bytes.
            let bytes = words.checked_mul(width.bytes()).filter(|bytes| *bytes >= size_of::<u64>());
            let bytes = bytes.ok_or(refuse(ErrorKind::Other))?;
            let mapping = Mapping::new(&file, bytes, Place::default());
            let mapping = mapping.map_err(file.error(Operation::Map))?;
            Ok(Device::new(Parts { mapping, file }, bytes, width))
        }
    }

    impl AsFd for Device {
        fn as_fd(&self) -> BorrowedFd<'_> {
            self.file().as_fd()
        }
    }

    /// Unmaps the buffer and gives the descriptor away, without disabling.
    impl From<Device> for OwnedFd {
        fn from(device: Device) -> OwnedFd {
            device.into_parts().file.into()
        }
    }
}
