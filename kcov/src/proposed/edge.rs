//! Devices and sessions of unique edges, which have a buffer of their own.

use super::{EdgeTrace, UniqEdge, UniqPc};
use crate::buffer::{Buffer, Width};
use crate::device::Device;
use crate::error::{Error, Operation};
use crate::mode::TracePc;
use crate::sys;
use crate::trace::Trace;
use core::marker::PhantomData;
use core::mem;
use kcov_sys::linux::proposed::{KCOV_TRACE_UNIQ_EDGE, KCOV_TRACE_UNIQ_PC};

/// A device with its second buffer, that of the edges, mapped.
#[derive(Debug)]
pub struct EdgeDevice {
    /// Bears the device's key, so it goes first.
    edges: sys::Mapping,
    device: Device,
    width: Width,
}

impl EdgeDevice {
    /// Maps the second buffer of a device. It is as large as the first one.
    ///
    /// # Errors
    ///
    /// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory): it cannot be mapped.
    pub fn new(device: Device, _: UniqEdge) -> Result<EdgeDevice, Error> {
        let width = device.buffer().width();
        let edges = EdgeDevice::map(&device)?;
        edges
            .cover(device.mapping().key())
            .map_err(|errno| Error::from_errno(Operation::Protect, errno))?;
        Ok(EdgeDevice { edges, device, width })
    }

    /// Maps what follows the first buffer.
    pub(super) fn map(device: &Device) -> Result<sys::Mapping, Error> {
        let bytes = device.buffer().bytes();
        sys::Mapping::at(device.file(), bytes, bytes as u64)
            .map_err(|errno| Error::from_errno(Operation::Map, errno))
    }

    /// Gives the device back.
    #[must_use]
    pub fn into_device(self) -> Device {
        self.device
    }

    /// Starts recording the edges of the calling thread, from an empty buffer.
    ///
    /// # Errors
    ///
    /// As [`Device::enable`].
    pub fn enable(&mut self) -> Result<EdgeSession<'_>, Error> {
        EdgeSession::enable(self, KCOV_TRACE_UNIQ_EDGE)
    }

    /// Starts recording the edges and the program counters of the calling thread, each in its own
    /// buffer.
    ///
    /// # Errors
    ///
    /// As [`Device::enable`].
    pub fn enable_with_pcs(&mut self) -> Result<EdgeSession<'_>, Error> {
        EdgeSession::enable(self, KCOV_TRACE_UNIQ_EDGE | KCOV_TRACE_UNIQ_PC)
    }

    fn set_count(&self, count: usize) {
        self.device.write(|| self.edges().set_count(self.width, count as u64));
    }

    fn edges(&self) -> Buffer<'_> {
        // SAFETY: the mapping is page-aligned, has as many words as the device's own, lives as long
        // as the borrow of `self`, and this crate accesses it through `Buffer` only.
        unsafe { Buffer::new(self.edges.address(), self.device.words(), self.width) }
    }
}

/// The calling thread's edges are recorded for as long as this value lives. As for a
/// [`Session`](crate::Session), it stays in its thread, and dropping it disables.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct EdgeSession<'d> {
    device: &'d EdgeDevice,
    this_thread: PhantomData<*mut ()>,
}

impl<'d> EdgeSession<'d> {
    fn enable(device: &'d EdgeDevice, mode: u32) -> Result<EdgeSession<'d>, Error> {
        // What another session has left is not this one's, also in a buffer that it does not fill.
        // And the first store to a buffer may cost a page fault, which would be recorded.
        device.device.unprotect()?;
        let mut session = EdgeSession { device, this_thread: PhantomData };
        session.reset();
        if let Err(error) = device.device.request_enable_number(mode) {
            // There is nothing to end.
            mem::forget(session);
            device.device.protect()?;
            return Err(error);
        }
        session.reset();
        Ok(session)
    }

    /// Makes room in both buffers. What was recorded through this device is not recorded again.
    pub fn reset(&mut self) {
        self.device.device.reset(TracePc);
        self.device.set_count(0);
    }

    /// The edges since the last reset.
    #[must_use]
    pub fn edges(&self) -> EdgeTrace<'_> {
        EdgeTrace(Trace::freeze(self.device.edges(), TracePc))
    }

    /// The program counters since the last reset; none if they were not asked for.
    #[must_use]
    pub fn pcs(&self) -> Trace<'_, UniqPc> {
        Trace::freeze(self.device.device.buffer(), UniqPc(()))
    }

    /// Ends tracing and gives the program counters and the edges since the last reset.
    ///
    /// # Errors
    ///
    /// As [`Session::disable`](crate::Session::disable).
    pub fn disable(self) -> Result<(Trace<'d, UniqPc>, EdgeTrace<'d>), Error> {
        let result = self.end();
        mem::forget(self);
        result
    }

    fn end(&self) -> Result<(Trace<'d, UniqPc>, EdgeTrace<'d>), Error> {
        let device = self.device;
        let edges = Trace::freeze(device.edges(), TracePc);
        let pcs = Trace::freeze(device.device.buffer(), UniqPc(()));
        device.device.request_disable()?;
        device.device.set_count(TracePc, pcs.len());
        device.set_count(edges.len());
        device.device.protect()?;
        Ok((pcs, EdgeTrace(edges)))
    }
}

impl Drop for EdgeSession<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: the thread was not traced any more.
        let _ = self.end();
    }
}
