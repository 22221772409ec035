//! Requests of a program that does not use this crate.

use super::{Descriptor, Kernel};
use crate::buffer::Width;
use crate::error::{Error, Operation};
use crate::remote::linux::Argument;
use crate::sys::Request;
use kcov_sys::netbsd::kcov_ioc_remote_attach;

/// An open file of a fake kernel, for direct requests: only the kernel checks them, and nothing
/// happens implicitly. Dropping it closes the file without disabling.
///
/// Use it to test the fake kernel itself, or to stand for other programs on the machine of an
/// executor: they may enable a handle first, or end the collection from a source.
///
/// ```
/// use kcov::{ErrorKind, fake::Kernel};
///
/// let device = Kernel::netbsd().open_raw()?;
/// device.set_size(512)?;
/// let error = device.enable(3).unwrap_err();
/// assert_eq!(error.raw_os_error(), Some(22)); // EINVAL
/// # Ok::<(), kcov::Error>(())
/// ```
///
/// Each method returns the kernel's errno in an [`Error`].
#[derive(Debug)]
pub struct RawDevice(Descriptor);

impl Kernel {
    /// Opens a device without sizing it or mapping its buffer.
    ///
    /// # Errors
    ///
    /// Fails only if [`fail`](Self::fail) said so.
    pub fn open_raw(&self) -> Result<RawDevice, Error> {
        self.open_descriptor().map(RawDevice)
    }
}

impl RawDevice {
    fn error(&self, operation: Operation) -> impl Fn(i32) -> Error {
        let system = self.0.system();
        move |errno| Error::from_errno(system, operation, errno)
    }

    fn request(&self, operation: Operation, request: Request<'_>) -> Result<(), Error> {
        self.0.request(request).map_err(self.error(operation))
    }
}

macro_rules! requests {
    ($($(#[doc = $doc:literal])+ $name:ident($($argument:ident: $type:ty),*)
        $operation:ident = $request:expr;)+) => {
        impl RawDevice {$(
            $(#[doc = $doc])+
            ///
            /// # Errors
            ///
            /// Fails if the kernel refuses it.
            pub fn $name(&self, $($argument: $type),*) -> Result<(), Error> {
                self.request(Operation::$operation, $request)
            }
        )+}
    };
}

requests! {
    /// `KCOV_INIT_TRACE`, `KCOV_IOC_SETBUFSIZE`: sets the size in words.
    set_size(words: u64) SetSize = Request::SetSize(Width::W64, words);
    /// `KCOV_ENABLE`, `KCOV_IOC_ENABLE`: enables a mode by its number.
    enable(mode: u32) Enable = Request::Enable(mode);
    /// `KCOV_DISABLE`, `KCOV_IOC_DISABLE`.
    disable() Disable = Request::Disable;
    /// `KCOV_REMOTE_ENABLE`: enables a mode by its number, with the words per section, the handles,
    /// and a common handle or 0.
    enable_remote(mode: u32, area: u32, handles: &[u64], common: u64) EnableRemote =
        Request::EnableRemote(&argument(mode, area, handles, common));
    /// `KCOV_IOC_REMOTE_ATTACH`.
    attach(subsystem: u64, id: u64) Attach =
        Request::Attach(&kcov_ioc_remote_attach { subsystem, id });
    /// `KCOV_IOC_REMOTE_DETACH`.
    detach() DisableRemote = Request::Detach;
}

impl RawDevice {
    /// mmap(2) of this many bytes from the start, followed by munmap(2).
    ///
    /// # Errors
    ///
    /// Fails if the kernel refuses it.
    pub fn map(&self, bytes: usize) -> Result<(), Error> {
        self.0.map(bytes).map(drop).map_err(self.error(Operation::Map))
    }
}

fn argument(mode: u32, area: u32, handles: &[u64], common: u64) -> Argument {
    let mut argument = Argument {
        trace_mode: mode,
        area_size: area,
        num_handles: u32::try_from(handles.len()).unwrap_or(u32::MAX),
        _pad: 0,
        common_handle: common,
        handles: [0; 256],
    };
    argument.handles.iter_mut().zip(handles).for_each(|(place, handle)| *place = *handle);
    argument
}
