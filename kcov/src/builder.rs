//! How the device is opened.

use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::recovery::Recovery;
use crate::size::BufferSize;
use crate::sys;
use std::path::{Path, PathBuf};

/// How to open a [`Device`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    path: PathBuf,
    size: BufferSize,
    guard_pages: usize,
    least_descriptor: Option<i32>,
    write_protected: bool,
    recoverable: bool,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            path: sys::DEFAULT_PATH.into(),
            size: BufferSize::default(),
            guard_pages: 0,
            least_descriptor: None,
            write_protected: false,
            recoverable: false,
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
    /// [`ForkServer`](crate::ForkServer). The buffers of NetBSD's sources of remote coverage stay writable.
    pub fn write_protected(mut self) -> Builder {
        self.write_protected = true;
        self
    }

    /// Lets [`Device::recover`] repair the device after a target that closes or replaces descriptors
    /// and mappings which are not its own.
    ///
    /// Costs one system call more, here.
    pub fn recoverable(mut self) -> Builder {
        self.recoverable = true;
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
        let file = self.open_file()?;
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
        let write_protected = self.write_protected;
        let recovery = self.recoverable.then(|| Recovery::new(self, &file));
        let device = Device::new((file, mapping), (words, width), write_protected, recovery);
        device.protect()?;
        Ok(device)
    }

    /// Opens the file and moves its descriptor.
    pub(crate) fn open_file(&self) -> Result<sys::Device, Error> {
        let file = sys::open(&self.path).map_err(|errno| {
            let error = Error::from_errno(Operation::Open, errno).with_path(&self.path);
            match sys::explain_open(&self.path, errno) {
                Some(kind) => error.with_kind(kind),
                None => error,
            }
        })?;
        match self.least_descriptor {
            Some(least) => sys::move_up(file, least)
                .map_err(|errno| Error::from_errno(Operation::MoveDescriptor, errno)),
            None => Ok(file),
        }
    }
}
