//! The device: opened, sized and mapped.

use crate::buffer::{Buffer, Width};
use crate::builder::Builder;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{AnyMode, Mode, sealed};
use crate::recovery::Recovery;
use crate::session::{ForkServer, Session};
use crate::sys;
use std::sync::atomic::{AtomicBool, Ordering};

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
    pub(crate) words: usize,
    pub(crate) width: Width,
    /// A session was enabled and not disabled through this value.
    pub(crate) enabled: AtomicBool,
    /// The descriptor was attached to a source of remote coverage and not detached.
    pub(crate) attached: AtomicBool,
    /// The pages may be written to during sessions only. A key is the mapping's.
    write_protected: bool,
    /// What it takes to open the device again, if that was asked for.
    pub(crate) recovery: Option<Recovery>,
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

    /// Lets the calling thread read the buffer of a device that was opened as
    /// [`write_protected_by_key`](Builder::write_protected_by_key), whose documentation says who has
    /// to call it. Nothing else ever needs it, and it does nothing then, nor on platforms without
    /// keys.
    ///
    /// Two instructions on the thread's own register, no system call. What a signal handler gets it
    /// loses when it returns.
    #[inline]
    pub fn allow_reading(&self) {
        if let Some(key) = self.mapping.key() {
            key.allow_reading();
        }
    }

    pub(crate) fn new(
        (file, mapping): (sys::Device, sys::Mapping),
        (words, width): (usize, Width),
        write_protected: bool,
        recovery: Option<Recovery>,
    ) -> Device {
        let (enabled, attached) = (AtomicBool::new(false), AtomicBool::new(false));
        Device { mapping, words, width, enabled, attached, write_protected, recovery, file }
    }

    pub(crate) fn file(&self) -> &sys::Device {
        &self.file
    }

    pub(crate) fn file_mut(&mut self) -> &mut sys::Device {
        &mut self.file
    }

    pub(crate) fn mapping(&self) -> &sys::Mapping {
        &self.mapping
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
        // All within and by value, so that nothing is kept for the rare case of a key.
        self.write(move || {
            let buffer = self.buffer();
            buffer.set_count(sealed::width(mode, buffer.width()), count as u64);
        });
    }

    /// Stores to what the device has mapped, with the right to if it has a key, and that to read
    /// remains: so whoever begins a session, which resets, may read its trace.
    #[inline]
    pub(crate) fn write(&self, store: impl FnOnce()) {
        match self.mapping.key() {
            None => store(),
            Some(key) => key.write(store),
        }
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
