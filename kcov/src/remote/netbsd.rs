//! Remote coverage on NetBSD: sources.
//!
//! Parts of the kernel register *sources*, each with a buffer of its own of 262144 entries. A
//! device is attached to a source; then the source's buffer is mapped, and enabling collects
//! whatever the kernel does in the marked sections, in whichever thread. The only sources there are
//! belong to the ports of virtual USB host controllers, vhci(4): what the kernel does to get to know
//! a device that appears at the port.
//!
//! ```no_run
//! use kcov::{Device, mode::TracePc, remote::netbsd::Vhci};
//! use std::time::Duration;
//!
//! # fn main() -> Result<(), kcov::Error> {
//! let mut device = Device::open()?;
//! let mut attachment = device.attach(Vhci { bus: 0, port: 1 })?;
//! let session = attachment.enable(TracePc)?;
//! // … attach a USB device to the port, through /dev/vhci …
//! for pc in session.wait(Duration::from_secs(10)) {
//!     println!("{pc}");
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Nobody owns a source
//!
//! A source is collected from at most once at a time, but whoever is attached to it may end that:
//! by disabling, by detaching, and by closing an attached device, in this process or another one.
//! So a [`RemoteSession`] belongs to no thread and may be sent to another one, and its end may tell
//! that somebody else [was faster](ErrorKind::EndedElsewhere). It does not keep its thread from
//! having a [`Session`](crate::Session) on another device at the same time.
//!
//! A forked child inherits the attachment: dropping it there, or the session, ends the collection of
//! the parent. Let such a child end by exec(2) or _exit(2).
//!
//! # Platforms
//!
//! NetBSD 10 and later, in kernels that have vhci(4). Elsewhere
//! [`Device::attach`](crate::Device::attach) fails with [`Unsupported`](ErrorKind::Unsupported).
//!
//! # References
//!
//! `sys/kern/subr_kcov.c`, `sys/dev/usb/vhci.c`; kcov(4) says nothing of it.

use crate::buffer::{Buffer, Width};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{Mode, sealed};
use crate::sys;
use crate::trace::Trace;
use kcov_sys::netbsd::{
    KCOV_BUF_MAX_ENTRIES, KCOV_REMOTE_VHCI, kcov_ioc_remote_attach, kcov_remote_vhci_id,
};
use std::mem;
use std::time::Duration;

/// Words of a source's buffer, the count word included.
const WORDS: usize = KCOV_BUF_MAX_ENTRIES as usize;

/// Something in the kernel that coverage can be collected from: a subsystem and an id in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    subsystem: u64,
    id: u64,
}

impl Source {
    /// A source by its numbers, for kernels newer than this crate.
    #[must_use]
    pub const fn new(subsystem: u64, id: u64) -> Source {
        Source { subsystem, id }
    }

    /// The subsystem as the kernel takes it.
    #[must_use]
    pub const fn subsystem(self) -> u64 {
        self.subsystem
    }

    /// The id as the kernel takes it.
    #[must_use]
    pub const fn id(self) -> u64 {
        self.id
    }
}

/// A port of a virtual USB host controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_REMOTE_VHCI")]
#[doc(alias = "KCOV_REMOTE_VHCI_ID")]
pub struct Vhci {
    /// Number of the USB bus.
    pub bus: u32,
    /// Number of the port, from 0.
    pub port: u32,
}

impl From<Vhci> for Source {
    fn from(Vhci { bus, port }: Vhci) -> Source {
        Source::new(KCOV_REMOTE_VHCI, kcov_remote_vhci_id(bus.into(), port.into()))
    }
}

/// A device that is attached to a source, with the source's buffer mapped.
///
/// Dropping it detaches, which ends the collection from this source, whoever has begun it; the
/// device then has its own buffer again. A leaked attachment ends when the device is enabled or
/// attached the next time, or dropped.
#[derive(Debug)]
pub struct Attachment<'d> {
    device: &'d Device,
    mapping: sys::Mapping,
}

impl Attachment<'_> {
    /// Starts collecting from the source, with an empty trace.
    ///
    /// # Errors
    ///
    /// - [`SourceInUse`](ErrorKind::SourceInUse): the source is collected from already, through
    ///   this or another attached device.
    ///
    /// # Platforms
    ///
    /// `KCOV_IOC_ENABLE` on an attached descriptor.
    #[doc(alias = "KCOV_IOC_ENABLE")]
    pub fn enable<M: Mode>(&mut self, mode: M) -> Result<RemoteSession<'_, M>, Error> {
        let refuse = |kind| Error::new(Operation::EnableRemote, kind);
        let number = sys::number(mode.any()).ok_or_else(|| refuse(ErrorKind::ModeNotSupported))?;
        sys::enable(self.device.file(), number)
            .map_err(|errno| Error::from_errno(Operation::EnableRemote, errno))?;
        let mut session = RemoteSession { attachment: self, mode };
        // Not before it was enabled: until then the records may be somebody else's.
        session.reset();
        Ok(session)
    }

    /// Size of the source's buffer in words, the count word included.
    #[must_use]
    pub fn words(&self) -> usize {
        WORDS
    }

    /// Number of records that the source's buffer can hold in a mode.
    #[must_use]
    pub fn capacity<M: Mode>(&self, mode: M) -> usize {
        sealed::capacity(mode, Width::W64, WORDS * Width::W64.bytes())
    }

    fn buffer(&self) -> Buffer<'_> {
        // SAFETY: the mapping is page-aligned, has these words, lives as long as the borrow of
        // `self`, and this crate accesses it through `Buffer` only.
        unsafe { Buffer::new(self.mapping.address(), WORDS, Width::W64) }
    }
}

impl Drop for Attachment<'_> {
    fn drop(&mut self) {
        self.device.end_attachment();
    }
}

/// A source is collected from for as long as this value lives, unless somebody else who is attached
/// to it ends that.
///
/// Dropping it disables. Leaking it is sound: it ends with the [`Attachment`].
#[must_use = "dropping the session ends it"]
#[derive(Debug)]
pub struct RemoteSession<'a, M: Mode> {
    attachment: &'a Attachment<'a>,
    mode: M,
}

impl<'a, M: Mode> RemoteSession<'a, M> {
    /// Forgets the records. A section that runs at the same time may be lost in part or be kept.
    #[inline]
    pub fn reset(&mut self) {
        self.attachment.buffer().set_count(sealed::width(self.mode, Width::W64), 0);
    }

    /// The records since the last reset. More may come, also of a section that runs.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        Trace::freeze(self.attachment.buffer(), self.mode)
    }

    /// Waits until there is a record, at most for `limit`.
    ///
    /// The kernel tells nobody when a section runs, so this looks again and again, at growing
    /// intervals of up to 10 ms. An empty trace means that none came in time.
    #[must_use]
    pub fn wait(&self, limit: Duration) -> Trace<'_, M> {
        self.wait_for(1, limit)
    }

    /// Waits until there are `records` records or the buffer is full, at most for `limit`.
    #[must_use]
    pub fn wait_for(&self, records: usize, limit: Duration) -> Trace<'_, M> {
        super::wait_for(|| self.trace(), records, limit)
    }

    /// Ends collection and gives the records since the last reset.
    ///
    /// # Errors
    ///
    /// - [`EndedElsewhere`](ErrorKind::EndedElsewhere): somebody who is attached to the source has
    ///   ended it already.
    pub fn disable(self) -> Result<Trace<'a, M>, Error> {
        let session = mem::ManuallyDrop::new(self);
        sys::disable(session.attachment.device.file())
            .map_err(|errno| Error::from_errno(Operation::DisableRemote, errno))?;
        Ok(Trace::freeze(session.attachment.buffer(), session.mode))
    }
}

impl<M: Mode> Drop for RemoteSession<'_, M> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: somebody else has ended it.
        let _ = sys::disable(self.attachment.device.file());
    }
}

impl Device {
    /// Attaches the device to a source, whose buffer then takes the place of the device's own.
    ///
    /// # Errors
    ///
    /// - [`NoSuchSource`](ErrorKind::NoSuchSource): the kernel has no such source.
    /// - [`AlreadyEnabled`](ErrorKind::AlreadyEnabled): a thread is traced through this device.
    /// - [`Unsupported`](ErrorKind::Unsupported): not NetBSD, or a release before 10.
    /// - [`OutOfMemory`](ErrorKind::OutOfMemory): the source's buffer could not be mapped.
    ///
    /// # Platforms
    ///
    /// `KCOV_IOC_REMOTE_ATTACH` and mmap(2) on NetBSD 10 and later.
    #[doc(alias = "KCOV_IOC_REMOTE_ATTACH")]
    pub fn attach(&mut self, source: impl Into<Source>) -> Result<Attachment<'_>, Error> {
        if !sys::HAS_SOURCES {
            return Err(Error::new(Operation::Attach, ErrorKind::Unsupported));
        }
        self.end_attachment();
        let Source { subsystem, id } = source.into();
        sys::attach(self.file(), kcov_ioc_remote_attach { subsystem, id })
            .map_err(|errno| Error::from_errno(Operation::Attach, errno))?;
        self.mark_attached();
        match sys::Mapping::new(self.file(), WORDS * Width::W64.bytes(), 0) {
            Ok(mapping) => Ok(Attachment { device: self, mapping }),
            Err(errno) => {
                self.end_attachment();
                Err(Error::from_errno(Operation::Map, errno))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_is_bus_and_port_in_one_number() {
        let source = Source::from(Vhci { bus: 1, port: 2 });
        assert_eq!((source.subsystem(), source.id()), (0, 0x1_0000_0002));
        assert_eq!(source, Source::new(0, 0x1_0000_0002));
    }
}
