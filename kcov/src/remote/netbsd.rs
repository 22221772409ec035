//! Remote coverage on NetBSD: sources.
//!
//! Parts of the kernel register *sources*, each with a buffer of 262144 entries. A device is
//! attached to a source; enabling then collects whatever any thread executes in the source's
//! sections, into the source's buffer. The only existing sources are the ports of virtual USB host
//! controllers, vhci(4): they cover how the kernel explores a device that appears at the port.
//!
//! ```no_run
//! use kcov::{Device, mode::TracePc, remote::netbsd::Source};
//! use std::time::{Duration, Instant};
//!
//! let mut attachment = Device::open()?.attach(Source::vhci(0, 1))?;
//! let session = attachment.enable(TracePc)?;
//! // ... attach a USB device to the port, through /dev/vhci ...
//! session.settle(Duration::from_millis(500), Instant::now() + Duration::from_secs(10));
//! session.trace().iter().for_each(|pc| println!("{pc}"));
//! # Ok::<(), kcov::Error>(())
//! ```
//!
//! # Nobody owns a source
//!
//! Anybody attached to a source may end the collection by disabling, detaching, or closing an
//! attached device, in this process or another one. So a [`RemoteSession`] belongs to no thread,
//! and its end may report that it [was ended elsewhere](ErrorKind::EndedElsewhere). Another process
//! may then enable the source in another mode; a session that keeps reading would misread those
//! records. This crate attaches to a source once per process; it cannot see other processes.
//!
//! A forked child inherits the attachment: if it drops that or the session, it ends the parent's
//! collection. Such a child must end by execve(2) or _exit(2).
//!
//! # Platforms
//!
//! NetBSD 10 and later, in kernels that have vhci(4). Elsewhere
//! [`Device::attach`](crate::Device::attach) fails with [`Unsupported`](ErrorKind::Unsupported).
//!
//! # References
//!
//! `sys/kern/subr_kcov.c`, `sys/dev/usb/vhci.c`; kcov(4) does not mention it.

use super::RemoteSession;
use crate::buffer::{Buffer, Width};
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{Mode, SEAL};
use crate::owner::{Active, End, Owner};
use crate::sys::{File, Mapping, Place, Request};
use kcov_sys::netbsd::{
    KCOV_BUF_MAX_ENTRIES, KCOV_REMOTE_VHCI, kcov_ioc_remote_attach, kcov_remote_vhci_id,
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Words in a source's buffer, including the count word.
const WORDS: usize = KCOV_BUF_MAX_ENTRIES as usize;

/// A part of the kernel to collect coverage from: a subsystem and an id in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    pub(crate) subsystem: u64,
    pub(crate) id: u64,
}

impl Source {
    /// A source by its numbers in `KCOV_IOC_REMOTE_ATTACH`.
    pub const fn new(subsystem: u64, id: u64) -> Source {
        Source { subsystem, id }
    }

    /// A port, counted from 0, of the virtual USB host controller with this bus number.
    #[doc(alias = "KCOV_REMOTE_VHCI")]
    #[doc(alias = "KCOV_REMOTE_VHCI_ID")]
    pub const fn vhci(bus: u32, port: u32) -> Source {
        Source::new(KCOV_REMOTE_VHCI, kcov_remote_vhci_id(bus as u64, port as u64))
    }
}

/// The sources to which devices of this process are attached, each with its kernel. Two attachments
/// in different modes would read each other's records.
static ATTACHED: Mutex<Vec<(usize, Source)>> = Mutex::new(Vec::new());

fn attached() -> MutexGuard<'static, Vec<(usize, Source)>> {
    ATTACHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The kernel of a device: the host's, or a fake one with sources of its own.
fn kernel_id(file: &File) -> usize {
    match file {
        File::Kernel(..) => 0,
        #[cfg(feature = "fake")]
        File::Fake(file) => file.kernel_id(),
    }
}

/// A device that is attached to a source, with the source's buffer mapped.
///
/// Dropping it detaches and closes the device, which ends all collection from this source.
#[derive(Debug)]
pub struct Attachment {
    active: Active<Device, Attached>,
}

#[derive(Debug)]
struct Attached {
    mapping: Mapping,
    source: Source,
}

impl End<Device> for Attached {
    fn end(&self, device: &Device) -> Result<(), Error> {
        // No thread has enabled this device, so the driver has no reason to refuse.
        let _ = device.file().request(Request::Detach);
        let this = (kernel_id(device.file()), self.source);
        attached().retain(|other| *other != this);
        Ok(())
    }
}

impl Attachment {
    /// Starts collecting from the source, with an empty trace. The session borrows the attachment.
    ///
    /// # Errors
    ///
    /// - [`SourceInUse`](ErrorKind::SourceInUse): another device collects from the source. That
    ///   device loses the records that it has so far.
    /// - [`ModeNotBuiltIn`](ErrorKind::ModeNotBuiltIn): the kernel does not know the mode.
    ///
    /// # Platforms
    ///
    /// `KCOV_IOC_ENABLE` on an attached descriptor.
    #[doc(alias = "KCOV_IOC_ENABLE")]
    pub fn enable<M: Mode>(&mut self, mode: M) -> Result<RemoteSession<M, &mut Attachment>, Error> {
        begin(self, mode)?;
        Ok(RemoteSession::enabled(self, mode, None))
    }

    /// Starts collecting as [`enable`](Self::enable) does. The session owns the attachment.
    ///
    /// # Errors
    ///
    /// Same as [`enable`](Self::enable). The error drops the attachment.
    pub fn into_session<M: Mode>(self, mode: M) -> Result<RemoteSession<M, Attachment>, Error> {
        begin(&self, mode)?;
        Ok(RemoteSession::enabled(self, mode, None))
    }

    /// Detaches, which ends the collection from the source, and gives the device back.
    pub fn detach(self) -> Device {
        self.active.finish().1
    }

    pub(crate) fn buffer(&self) -> Buffer<'_> {
        let (start, bytes) = (self.active.how.mapping.start(), WORDS * Width::W64.bytes());
        // SAFETY: the aligned mapping has `bytes` bytes and outlives the borrow of `self`; this
        // crate accesses it only through `Buffer`.
        unsafe { Buffer::new(start, bytes, Width::W64) }
    }

    /// The attached device.
    pub(crate) fn inner(&self) -> &Device {
        &self.active.owner
    }
}

/// Starts collecting from the source of an attachment.
pub(super) fn begin<M: Mode>(attachment: &impl Owner, mode: M) -> Result<(), Error> {
    let (file, buffer) = (attachment.device(SEAL).file(), attachment.buffer(SEAL));
    let number = file.system().number(mode.kind(SEAL), true);
    let refuse = |kind| Error::new(Operation::EnableRemote, kind).with_path(file.path());
    let number = number.map_err(refuse)?;
    // If somebody else stored a count, the kernel could write in front of the buffer.
    buffer.set_count(Width::W64, 0);
    file.request(Request::Enable(number)).map_err(file.error(Operation::EnableRemote))?;
    buffer.set_count(Width::W64, 0);
    Ok(())
}

impl Device {
    /// Attaches the device to a source of remote coverage and maps the source's buffer.
    ///
    /// # Errors
    ///
    /// Each error drops the device.
    ///
    /// - [`NoSuchSource`](ErrorKind::NoSuchSource): the kernel has no such source.
    /// - [`SourceInUse`](ErrorKind::SourceInUse): this process has attached a device to it already.
    /// - [`AlreadyEnabled`](ErrorKind::AlreadyEnabled): a thread is traced through this device.
    /// - [`Unsupported`](ErrorKind::Unsupported): not NetBSD, or a release before 10.
    /// - [`OutOfMemory`](ErrorKind::OutOfMemory): the source's buffer could not be mapped.
    ///
    /// # Platforms
    ///
    /// `KCOV_IOC_REMOTE_ATTACH` and mmap(2) on NetBSD 10 and later.
    #[doc(alias = "KCOV_IOC_REMOTE_ATTACH")]
    pub fn attach(self, source: Source) -> Result<Attachment, Error> {
        let mapping = self.begin_attachment(source)?;
        Ok(Attachment { active: Active { owner: self, how: Attached { mapping, source } } })
    }

    fn begin_attachment(&self, source: Source) -> Result<Mapping, Error> {
        let refuse = |kind| Error::new(Operation::Attach, kind).with_path(self.file().path());
        if !self.system().has_sources {
            return Err(refuse(ErrorKind::Unsupported));
        }
        let this = (kernel_id(self.file()), source);
        let mut all = attached();
        if all.contains(&this) {
            return Err(refuse(ErrorKind::SourceInUse));
        }
        let (file, Source { subsystem, id }) = (self.file(), source);
        file.request(Request::Attach(&kcov_ioc_remote_attach { subsystem, id }))
            .map_err(file.error(Operation::Attach))?;
        let mapping =
            Mapping::new(file, WORDS * Width::W64.bytes(), Place::default()).map_err(|errno| {
                // Nobody has enabled collection through this device, so the driver does not refuse.
                let _ = file.request(Request::Detach);
                file.error(Operation::Map)(errno)
            })?;
        all.push(this);
        Ok(mapping)
    }
}
