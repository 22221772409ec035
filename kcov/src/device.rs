//! The device: opened, sized and mapped.

use crate::buffer::{Buffer, Width};
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{AnyMode, Mode, sealed};
use crate::session::{ForkServer, Session};
use crate::size::BufferSize;
use crate::sys;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// How to open a [`Device`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    path: PathBuf,
    size: BufferSize,
    guard_pages: usize,
    least_descriptor: Option<i32>,
    write_protected: bool,
}

impl Builder {
    fn new() -> Builder {
        Builder {
            path: sys::DEFAULT_PATH.into(),
            size: BufferSize::default(),
            guard_pages: 0,
            least_descriptor: None,
            write_protected: false,
        }
    }

    /// Opens another file than the system's usual one.
    pub fn path(mut self, path: impl AsRef<Path>) -> Builder {
        path.as_ref().clone_into(&mut self.path);
        self
    }

    /// Asks for a buffer of at least this size.
    pub fn size(mut self, size: BufferSize) -> Builder {
        self.size = size;
        self
    }

    /// Puts this many pages before and behind the buffer that nobody may access, so that a target
    /// that runs over the end of its own memory faults and does not forge coverage.
    pub fn guard_pages(mut self, pages: usize) -> Builder {
        self.guard_pages = pages;
        self
    }

    /// Moves the descriptor to the first free number that is not less than this one, out of the way
    /// of a target that closes or replaces low ones. It stays close-on-exec, as it always is.
    pub fn least_descriptor(mut self, number: i32) -> Builder {
        self.least_descriptor = Some(number);
        self
    }

    /// Lets nobody write to the buffer while no session is enabled: a stray store faults.
    ///
    /// The kernel records all the same. Each session costs two system calls more, before it is
    /// enabled and after it is disabled, so that the trace does not show them; so does a reset of a
    /// [`ForkServer`]. The buffers of NetBSD's sources of remote coverage stay writable.
    pub fn write_protected(mut self) -> Builder {
        self.write_protected = true;
        self
    }

    /// Opens the device, sizes its buffer and maps it.
    ///
    /// # Errors
    ///
    /// - [`Unsupported`](ErrorKind::Unsupported): this crate knows no kcov on this system.
    /// - [`NotBuiltIn`](ErrorKind::NotBuiltIn), [`DebugfsNotMounted`](ErrorKind::DebugfsNotMounted),
    ///   [`PermissionDenied`](ErrorKind::PermissionDenied), [`LockedDown`](ErrorKind::LockedDown):
    ///   there is no device, or not for this process; the message says what to do.
    /// - [`NotKcov`](ErrorKind::NotKcov): the path leads to something else.
    /// - [`SizeOutOfLimits`](ErrorKind::SizeOutOfLimits): the system does not allow a buffer of
    ///   this size.
    /// - [`OutOfMemory`](ErrorKind::OutOfMemory): the kernel could not allocate or map it.
    /// - [`DescriptorOutOfLimits`](ErrorKind::DescriptorOutOfLimits): the process may have no
    ///   descriptor with such a number.
    pub fn open(self) -> Result<Device, Error> {
        let open_error = |errno| {
            let error = Error::from_errno(Operation::Open, errno).with_path(&self.path);
            match sys::explain_open(&self.path, errno) {
                Some(kind) => error.with_kind(kind),
                None => error,
            }
        };
        let mut file = sys::open(&self.path).map_err(open_error)?;
        if let Some(least) = self.least_descriptor {
            file = sys::move_up(file, least)
                .map_err(|errno| Error::from_errno(Operation::MoveDescriptor, errno))?;
        }

        let mut widths = sys::WIDTHS.iter();
        let (width, words) = loop {
            let Some(&width) = widths.next() else {
                return Err(Error::new(Operation::SetSize, ErrorKind::NotKcov));
            };
            let words = self.size.words_for(width)?;
            match sys::set_size(&file, width, words) {
                Ok(()) => break (width, words),
                Err(errno) if errno == sys::WRONG_WIDTH && widths.len() > 0 => {}
                Err(errno) => return Err(Error::from_errno(Operation::SetSize, errno)),
            }
        };
        let words = usize::try_from(words)
            .map_err(|_| Error::new(Operation::Map, ErrorKind::OutOfMemory))?;
        let mapping = sys::Mapping::new(&file, words * width.bytes(), self.guard_pages)
            .map_err(|errno| Error::from_errno(Operation::Map, errno))?;
        let (enabled, attached) = (AtomicBool::new(false), AtomicBool::new(false));
        let write_protected = self.write_protected;
        let device = Device { mapping, words, width, enabled, attached, write_protected, file };
        device.protect()?;
        Ok(device)
    }
}

/// An open kcov device with its buffer, which any one thread at a time can be traced into.
///
/// The device may be moved and shared between threads; what is tied to a thread is the
/// [`Session`].
///
/// Dropping a device whose session was leaked disables it first if the dropping thread is the
/// traced one. A thread that is traced through a descriptor that nobody holds any more stays
/// traced until it ends; under NetBSD it can never be traced again. So drop a device in the thread
/// that leaked its session, if that must be.
///
/// A thread that ends while it is traced frees the device, on Linux and NetBSD 9 at once. NetBSD 10
/// may do so only when the process next starts, awaits or ends a thread; until then the device is
/// refused as [`AlreadyEnabled`](ErrorKind::AlreadyEnabled). A session that is dropped in time
/// avoids that.
#[derive(Debug)]
pub struct Device {
    mapping: sys::Mapping,
    words: usize,
    width: Width,
    /// A session was enabled and not disabled through this value.
    enabled: AtomicBool,
    /// The descriptor was attached to a source of remote coverage and not detached.
    attached: AtomicBool,
    /// The buffer may be written to during sessions only.
    write_protected: bool,
    file: sys::Device,
}

impl Device {
    /// Opens the system's device with a buffer of the default size.
    ///
    /// # Errors
    ///
    /// As [`Builder::open`].
    ///
    /// # Platforms
    ///
    /// `/sys/kernel/debug/kcov` on Linux, `/dev/kcov` on NetBSD.
    pub fn open() -> Result<Device, Error> {
        Device::builder().open()
    }

    /// Starts with the system's device and the default size, to change either.
    pub fn builder() -> Builder {
        Builder::new()
    }

    /// Starts tracing the calling thread, with an empty trace.
    ///
    /// Only what the thread does itself inside the kernel is recorded: no interrupts, no other
    /// threads, no child processes. Tracing survives exec(2), into the same buffer.
    ///
    /// # Errors
    ///
    /// - [`AlreadyEnabled`](ErrorKind::AlreadyEnabled): this device is enabled by some thread, or
    ///   this thread is traced through another device.
    /// - [`ModeNotBuiltIn`](ErrorKind::ModeNotBuiltIn): the kernel was built without the mode.
    /// - [`ModeNotSupported`](ErrorKind::ModeNotSupported): the system has no such mode.
    ///
    /// # Platforms
    ///
    /// `KCOV_ENABLE` on Linux, `KCOV_IOC_ENABLE` on NetBSD.
    #[doc(alias = "KCOV_ENABLE")]
    #[doc(alias = "KCOV_IOC_ENABLE")]
    pub fn enable<M: Mode>(&mut self, mode: M) -> Result<Session<'_, M>, Error> {
        Session::enable(self, mode)
    }

    /// Uses the device from forked children, each of which enables it in itself.
    pub fn fork_server<M: Mode>(&mut self, mode: M) -> ForkServer<'_, M> {
        ForkServer::new(self, mode)
    }

    /// Size of the buffer in words, the count word included: what was asked for, rounded up to
    /// whole pages.
    #[must_use]
    pub fn words(&self) -> usize {
        self.words
    }

    /// Number of records that the buffer can hold in a mode.
    #[must_use]
    pub fn capacity<M: Mode>(&self, mode: M) -> usize {
        sealed::capacity(mode, self.width, self.words * self.width.bytes())
    }

    pub(crate) fn file(&self) -> &sys::Device {
        &self.file
    }

    #[inline]
    pub(crate) fn buffer(&self) -> Buffer<'_> {
        // SAFETY: the mapping is page-aligned, has these words, a page of them at least, lives as
        // long as the borrow of `self`, and this crate accesses it through `Buffer` only.
        unsafe { Buffer::new(self.mapping.address(), self.words, self.width) }
    }

    #[inline]
    pub(crate) fn reset<M: Mode>(&self, mode: M) {
        self.set_count(mode, 0);
    }

    #[inline]
    pub(crate) fn set_count<M: Mode>(&self, mode: M, count: usize) {
        let buffer = self.buffer();
        buffer.set_count(sealed::width(mode, buffer.width()), count as u64);
    }

    /// Lets the process write to the buffer, if it may not.
    pub(crate) fn unprotect(&self) -> Result<(), Error> {
        self.set_writable(true)
    }

    /// Lets nobody write to the buffer, if that was asked for.
    pub(crate) fn protect(&self) -> Result<(), Error> {
        self.set_writable(false)
    }

    fn set_writable(&self, writable: bool) -> Result<(), Error> {
        if !self.write_protected {
            return Ok(());
        }
        let set = self.mapping.set_writable(writable);
        set.map_err(|errno| Error::from_errno(Operation::Protect, errno))
    }

    pub(crate) fn request_enable(&self, mode: AnyMode) -> Result<(), Error> {
        let number = sys::number(mode)
            .ok_or_else(|| Error::new(Operation::Enable, ErrorKind::ModeNotSupported))?;
        self.request_enable_number(number)
    }

    pub(crate) fn request_enable_unique(&self, bitmap_words: usize) -> Result<(), Error> {
        sys::enable_unique(&self.file, bitmap_words)
            .map_err(|errno| Error::from_errno(Operation::EnableUnique, errno))?;
        self.mark_enabled();
        Ok(())
    }

    pub(crate) fn request_enable_number(&self, number: u32) -> Result<(), Error> {
        self.end_attachment();
        sys::enable(&self.file, number)
            .map_err(|errno| Error::from_errno(Operation::Enable, errno))?;
        self.mark_enabled();
        Ok(())
    }

    pub(crate) fn mark_attached(&self) {
        self.attached.store(true, Ordering::Relaxed);
    }

    /// Detaches if the device is attached. An attachment that was leaked must not turn what is
    /// meant for this thread into remote coverage.
    pub(crate) fn end_attachment(&self) {
        if self.attached.swap(false, Ordering::Relaxed) {
            // It is attached and not enabled for a thread, so the kernel has no reason to refuse.
            let _ = sys::detach(&self.file);
        }
    }

    pub(crate) fn mark_enabled(&self) {
        self.enabled.store(true, Ordering::Relaxed);
    }

    pub(crate) fn request_disable(&self) -> Result<(), Error> {
        sys::disable(&self.file).map_err(|errno| Error::from_errno(Operation::Disable, errno))?;
        self.enabled.store(false, Ordering::Relaxed);
        Ok(())
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        if *self.enabled.get_mut() {
            // A session was leaked. If it was this thread's, it ends here; if not, the request is
            // refused and changes nothing.
            let _ = self.request_disable();
        }
    }
}
