//! Each PC, edge or comparison once, for as long as the device is open.

use crate::buffer::{Buffer, Width};
use crate::device::Device;
use crate::error::{Error, Operation};
use crate::mode::{AnyMode, Mode, TraceCmp, TracePc, sealed};
use crate::pc::Pc;
use crate::record::Comparison;
use crate::sys;
use crate::trace::Trace;
use kcov_sys::linux::proposed::{KCOV_TRACE_UNIQ_EDGE, KCOV_TRACE_UNIQ_PC};
use std::fmt;
use std::marker::PhantomData;
use std::mem;

/// Collects each program counter once: one word a record.
///
/// The kernel remembers what it has recorded until the device is dropped. A reset makes room, and
/// does not make it forget.
///
/// # References
///
/// "kcov: introduce new kcov KCOV_TRACE_UNIQ_PC mode", Jiao Joey, 2025-01-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_UNIQ_PC")]
pub struct UniqPc(pub(super) ());

impl sealed::Layout for UniqPc {
    #[inline]
    fn stride(self) -> usize {
        TracePc.stride()
    }

    #[inline]
    fn is_wide(self) -> bool {
        TracePc.is_wide()
    }
}

impl Mode for UniqPc {
    type Record = Pc;

    #[inline]
    fn any(self) -> AnyMode {
        AnyMode::UniqPc(self)
    }

    #[inline]
    unsafe fn load(self, view: sealed::View<'_>, index: usize) -> Pc {
        // SAFETY: the capacity is the same, so the caller's duty is.
        unsafe { TracePc.load(view, index) }
    }
}

/// Collects each comparison once, of one place with the same type and operands: four words of 64
/// bits a record.
///
/// # References
///
/// "kcov: introduce new kcov KCOV_TRACE_UNIQ_CMP mode", Jiao Joey, 2025-01-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_UNIQ_CMP")]
pub struct UniqCmp(pub(super) ());

impl sealed::Layout for UniqCmp {
    #[inline]
    fn stride(self) -> usize {
        TraceCmp.stride()
    }

    #[inline]
    fn is_wide(self) -> bool {
        TraceCmp.is_wide()
    }
}

impl Mode for UniqCmp {
    type Record = Comparison;

    #[inline]
    fn any(self) -> AnyMode {
        AnyMode::UniqCmp(self)
    }

    #[inline]
    unsafe fn load(self, view: sealed::View<'_>, index: usize) -> Comparison {
        // SAFETY: the capacity is the same, so the caller's duty is.
        unsafe { TraceCmp.load(view, index) }
    }
}

/// That the kernel collects unique edges. Edges have a buffer of their own, so they need an
/// [`EdgeDevice`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_UNIQ_EDGE")]
pub struct UniqEdge(pub(super) ());

/// A pair of basic blocks that were executed one after the other, as one number: the second one's
/// address, with its low 12 bits changed by a hash of those of the first one's. Different edges can
/// have the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Edge(u64);

impl Edge {
    /// Takes a word as recorded.
    #[inline]
    #[must_use]
    pub const fn new(word: u64) -> Edge {
        Edge(word)
    }

    /// The edge from one block to the next, as a kernel with words of 64 bits would record it.
    #[must_use]
    pub const fn between(first: Pc, second: Pc) -> Edge {
        Edge(kcov_sys::linux::proposed::kcov_uniq_edge(first.address(), second.address()))
    }

    /// The word as recorded.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edge({:#x})", self.0)
    }
}

/// Prefixed hexadecimal.
impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The unique edges that a buffer held at one moment. As for [`Trace`], the count was read once and
/// clamped.
#[derive(Clone, Copy, Debug)]
pub struct EdgeTrace<'b>(Trace<'b, TracePc>);

impl<'b> EdgeTrace<'b> {
    /// Number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there is no edge.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of edges that the buffer can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Whether the buffer is full.
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.0.is_truncated()
    }

    /// The edges in the order in which they were first seen.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Edge> + ExactSizeIterator + use<'b> {
        self.0.iter().map(|word| Edge(word.address()))
    }
}

/// A device with its second buffer, that of the edges, mapped.
#[derive(Debug)]
pub struct EdgeDevice {
    device: Device,
    edges: sys::Mapping,
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
        Ok(EdgeDevice { device, edges, width })
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
        let mut session = EdgeSession { device, this_thread: PhantomData };
        session.reset();
        if let Err(error) = device.device.request_enable_number(mode) {
            // There is nothing to end.
            mem::forget(session);
            return Err(error);
        }
        session.reset();
        Ok(session)
    }

    /// Makes room in both buffers. What was recorded through this device is not recorded again.
    pub fn reset(&mut self) {
        self.device.device.reset(TracePc);
        let edges = self.device.edges();
        edges.set_count(edges.width(), 0);
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
        device.edges().set_count(device.width, edges.len() as u64);
        Ok((pcs, EdgeTrace(edges)))
    }
}

impl Drop for EdgeSession<'_> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: the thread was not traced any more.
        let _ = self.end();
    }
}
