//! Tracing of one thread, from enable to disable.

use crate::device::Device;
use crate::error::Error;
use crate::mode::Mode;
use crate::trace::Trace;
use std::marker::PhantomData;
use std::mem;

/// The calling thread is traced for as long as this value lives.
///
/// Dropping it disables, on early return and while unwinding too. It stays in its thread: the
/// kernel traces the thread that enabled and lets no other one disable. Leaking it is sound: the
/// thread stays traced until it ends or the device is dropped in it.
///
/// The head of the disabling system call is traced as well, so the trace ends where
/// [`disable`](Self::disable) was called and the count word is put back to that point, for readers
/// in other processes.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct Session<'d, M: Mode> {
    device: &'d Device,
    mode: M,
    this_thread: PhantomData<*mut ()>,
}

impl<'d, M: Mode> Session<'d, M> {
    pub(crate) fn enable(device: &'d Device, mode: M) -> Result<Session<'d, M>, Error> {
        device.unprotect()?;
        if let Err(error) = device.request_enable(mode.any()) {
            device.protect()?;
            return Err(error);
        }
        let mut session = Session { device, mode, this_thread: PhantomData };
        session.reset();
        Ok(session)
    }

    pub(crate) fn device(&self) -> &'d Device {
        self.device
    }

    /// Forgets the records, so that the next one is the first.
    ///
    /// One plain store, unless a [key](crate::Builder::write_protected_by_key) keeps others from it.
    /// Enabling does the same: the tail of its system call is not part of the
    /// trace.
    #[inline]
    pub fn reset(&mut self) {
        self.device.reset(self.mode);
    }

    /// The records since the last reset. One load; the records are read where they are.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        Trace::freeze(self.device.buffer(), self.mode)
    }

    /// Ends tracing and gives the records since the last reset.
    ///
    /// # Errors
    ///
    /// - [`NotEnabled`](crate::ErrorKind::NotEnabled): this thread is not the one that is traced,
    ///   for example in a child that was forked during the session.
    #[doc(alias = "KCOV_DISABLE")]
    #[doc(alias = "KCOV_IOC_DISABLE")]
    pub fn disable(self) -> Result<Trace<'d, M>, Error> {
        let result = self.end();
        mem::forget(self);
        result
    }

    fn end(&self) -> Result<Trace<'d, M>, Error> {
        let trace = Trace::freeze(self.device.buffer(), self.mode);
        self.device.request_disable()?;
        self.device.set_count(self.mode, trace.len());
        self.device.protect()?;
        Ok(trace)
    }
}

impl<M: Mode> Drop for Session<'_, M> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: the thread was not traced any more.
        let _ = self.end();
    }
}

/// A buffer that child processes fill, made by [`Device::fork_server`].
///
/// The device is opened, sized and mapped once, before the first fork. Each child enables tracing
/// in itself, and the parent reads when the child has ended; a child that ends without disabling is
/// disabled by the kernel.
#[derive(Debug)]
pub struct ForkServer<'d, M: Mode> {
    device: &'d Device,
    mode: M,
}

impl<'d, M: Mode> ForkServer<'d, M> {
    pub(crate) fn new(device: &'d Device, mode: M) -> ForkServer<'d, M> {
        ForkServer { device, mode }
    }

    /// In the child: starts tracing the calling thread, with an empty trace.
    ///
    /// Makes one system call and does not allocate, so it may follow a fork of a process that has
    /// several threads.
    ///
    /// # Errors
    ///
    /// As [`Device::enable`].
    pub fn enable(&mut self) -> Result<Session<'_, M>, Error> {
        Session::enable(self.device, self.mode)
    }

    /// In the parent: forgets the records, so that a child that dies before it enables leaves an
    /// empty trace and not that of its predecessor.
    ///
    /// # Panics
    ///
    /// If the buffer is [write-protected](crate::Builder::write_protected) and somebody has unmapped
    /// it.
    #[inline]
    pub fn reset(&mut self) {
        self.device.unprotect().expect("the buffer is mapped");
        self.device.reset(self.mode);
        self.device.protect().expect("the buffer is mapped");
    }

    /// In the parent: what the last child left. Wait for the child first.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        self.device.allow_reading();
        Trace::freeze(self.device.buffer(), self.mode)
    }
}
