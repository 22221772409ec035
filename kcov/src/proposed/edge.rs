//! Devices and sessions for unique edges, with a separate buffer.

use super::{EdgeTrace, UniqEdge, UniqPc};
use crate::buffer::Buffer;
use crate::device::Device;
use crate::error::{Error, Operation};
use crate::mode::TracePc;
use crate::sys::{File, Mapping, Pages, Request};
use crate::trace::Trace;
use core::marker::PhantomData;
use core::mem::ManuallyDrop;
use kcov_sys::linux::proposed::{KCOV_TRACE_UNIQ_EDGE, KCOV_TRACE_UNIQ_PC};

/// A device with its second buffer, for edges, mapped.
#[derive(Debug)]
pub struct EdgeDevice {
    edges: Mapping,
    device: Device,
}

impl EdgeDevice {
    /// Maps the second buffer of a device, which is as large as the first.
    ///
    /// # Errors
    ///
    /// - [`OutOfMemory`](crate::ErrorKind::OutOfMemory): the kernel could not map it.
    pub fn new(device: Device, _: UniqEdge) -> Result<EdgeDevice, Error> {
        let edges = EdgeDevice::map(&device)?;
        Ok(EdgeDevice { edges, device })
    }

    /// Maps the buffer that follows the first one.
    pub(super) fn map(device: &Device) -> Result<Mapping, Error> {
        let bytes = device.buffer().bytes();
        Mapping::at(device.file(), bytes, bytes as u64).map_err(device.file().error(Operation::Map))
    }

    /// Returns the device.
    #[must_use]
    pub fn into_device(self) -> Device {
        self.device
    }

    /// Starts recording the edges of the calling thread, with an empty buffer.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable`].
    pub fn enable(&mut self) -> Result<EdgeSession<'_>, Error> {
        EdgeSession::enable(self, KCOV_TRACE_UNIQ_EDGE)
    }

    /// Starts recording the edges and the program counters of the calling thread, each in its own
    /// buffer.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable`].
    pub fn enable_with_pcs(&mut self) -> Result<EdgeSession<'_>, Error> {
        EdgeSession::enable(self, KCOV_TRACE_UNIQ_EDGE | KCOV_TRACE_UNIQ_PC)
    }

    /// Stores the counts to both buffers.
    fn set_counts(&self, [pcs, edges]: [u64; 2]) {
        let (all_pcs, all_edges) = (self.device.buffer(), self.edges());
        all_pcs.set_count(all_pcs.width(), pcs);
        all_edges.set_count(all_edges.width(), edges);
    }

    fn counts(&self) -> [u64; 2] {
        [self.device.buffer(), self.edges()].map(|buffer| buffer.count(buffer.width()))
    }

    fn edges(&self) -> Buffer<'_> {
        let (bytes, width) = (self.device.buffer().bytes(), self.device.buffer().width());
        // SAFETY: the aligned mapping is as large as the device's buffer and outlives the borrow of
        // `self`; this crate accesses it only through `Buffer`.
        unsafe { Buffer::new(self.edges.start(), bytes, width) }
    }
}

impl Mapping {
    /// Maps a device from byte `offset` on.
    fn at(file: &File, bytes: usize, offset: u64) -> Result<Mapping, i32> {
        match file {
            File::Kernel(file, _) => Pages::map_at(file, bytes, offset, None).map(Mapping::Kernel),
            #[cfg(feature = "fake")]
            File::Fake(_) => Err(crate::error::linux::EINVAL),
        }
    }
}

/// The calling thread's edges are recorded for as long as this value lives. Like a
/// [`Session`](crate::Session), it cannot leave its thread, and dropping it disables.
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct EdgeSession<'d> {
    device: &'d EdgeDevice,
    this_thread: PhantomData<*mut ()>,
}

impl<'d> EdgeSession<'d> {
    fn enable(device: &'d EdgeDevice, mode: u32) -> Result<EdgeSession<'d>, Error> {
        device.device.begin(Operation::Enable, device.device.buffer().width(), |file| {
            // Drop the records of earlier sessions from the second buffer. Also take any page fault
            // of the first store now, before it would be recorded.
            device.set_counts([0, 0]);
            file.request(Request::Enable(mode))
        })?;
        device.set_counts([0, 0]);
        Ok(EdgeSession { device, this_thread: PhantomData })
    }

    /// Makes room in both buffers. The kernel does not record again what it recorded through this
    /// device.
    pub fn reset(&mut self) {
        self.device.set_counts([0, 0]);
    }

    /// The edges since the last reset.
    #[must_use]
    pub fn edges(&self) -> EdgeTrace<'_> {
        EdgeTrace(Trace::freeze(self.device.edges(), TracePc))
    }

    /// The program counters since the last reset; none if they were not requested.
    #[must_use]
    pub fn pcs(&self) -> Trace<'_, UniqPc> {
        Trace::freeze(self.device.device.buffer(), UniqPc(()))
    }

    /// Ends tracing and returns the program counters and the edges since the last reset.
    ///
    /// # Errors
    ///
    /// Same as [`Session::disable`](crate::Session::disable).
    pub fn disable(self) -> Result<(Trace<'d, UniqPc>, EdgeTrace<'d>), Error> {
        let session = ManuallyDrop::new(self);
        session.end()?;
        let EdgeDevice { device, .. } = session.device;
        let pcs = Trace::freeze(device.buffer(), UniqPc(()));
        Ok((pcs, EdgeTrace(Trace::freeze(session.device.edges(), TracePc))))
    }

    fn end(&self) -> Result<(), Error> {
        // Even corrupt counts: the traces are not to look empty.
        let counts = self.device.counts();
        self.device.device.request_disable()?;
        self.device.set_counts(counts);
        Ok(())
    }
}

impl Drop for EdgeSession<'_> {
    fn drop(&mut self) {
        // A failure means that the thread was no longer traced; a destructor cannot report it.
        let _ = self.end();
    }
}
