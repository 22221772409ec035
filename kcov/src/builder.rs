//! Options for opening the device.

use crate::device::{Device, Parts};
use crate::error::{Error, ErrorKind, Operation};
use crate::size::BufferSize;
use crate::sys::{self, File, Mapping};
use std::path::{Path, PathBuf};

/// Options for opening a [`Device`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    place: Place,
    size: BufferSize,
    guard_pages: usize,
    min_fd: Option<i32>,
    pub(crate) protection: Protection,
}

/// Where the device is.
#[derive(Clone, Debug)]
enum Place {
    Path {
        path: PathBuf,
        checked: bool,
    },
    #[cfg(feature = "fake")]
    Fake(crate::fake::Kernel),
}

/// How the buffer is protected from stores by this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    None,
    Pages,
    #[cfg(feature = "pkeys")]
    Key,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            place: Place::Path { path: sys::DEFAULT_PATH.into(), checked: true },
            size: BufferSize::default(),
            guard_pages: 0,
            min_fd: None,
            protection: Protection::None,
        }
    }

    #[cfg(feature = "fake")]
    pub(crate) fn of_fake(kernel: crate::fake::Kernel) -> Builder {
        Builder { place: Place::Fake(kernel), ..Builder::new() }
    }

    /// Opens this file instead of the system's default device.
    ///
    /// Before any request, [`open`](Self::open) checks the file: it must be a regular file of
    /// debugfs on Linux, or a device with kcov's major number on NetBSD.
    pub fn path(mut self, path: impl AsRef<Path>) -> Builder {
        self.place = Place::Path { path: path.as_ref().to_owned(), checked: true };
        self
    }

    /// Opens this file without making sure that it is a kcov device. For systems with the device
    /// elsewhere, such as gVisor.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the file is a kcov device with this system's interface. Another
    /// driver may treat the integer argument of a request as a pointer.
    pub unsafe fn path_unchecked(mut self, path: impl AsRef<Path>) -> Builder {
        self.place = Place::Path { path: path.as_ref().to_owned(), checked: false };
        self
    }

    /// Requests a buffer of at least this size.
    pub fn size(mut self, size: BufferSize) -> Builder {
        self.size = size;
        self
    }

    /// Puts this many inaccessible pages before and after the buffer. A target that overruns its
    /// own memory then faults instead of forging coverage.
    pub fn guard_pages(mut self, pages: usize) -> Builder {
        self.guard_pages = pages;
        self
    }

    /// Moves the file descriptor to the lowest free number that is at least `min`, away from
    /// targets that close or replace low numbers. It is close-on-exec, as always.
    pub fn min_fd(mut self, min: i32) -> Builder {
        self.min_fd = Some(min);
        self
    }

    /// Write-protects the buffer while no session is enabled, so that a stray store faults.
    ///
    /// The kernel can still record. Each session costs two more system calls, one before it is
    /// enabled and one after it is disabled, so the trace shows neither; so does
    /// [`ChildBuffer::reset`](crate::ChildBuffer::reset). NetBSD's remote buffers stay writable.
    pub fn write_protected(mut self) -> Builder {
        self.protection = Protection::Pages;
        self
    }

    /// Opens the device, sizes its buffer and maps it.
    ///
    /// # Errors
    ///
    /// - [`Unsupported`](ErrorKind::Unsupported): this crate does not support kcov on this system.
    /// - [`NotBuiltIn`](ErrorKind::NotBuiltIn),
    ///   [`DebugfsNotMounted`](ErrorKind::DebugfsNotMounted),
    ///   [`PermissionDenied`](ErrorKind::PermissionDenied), [`LockedDown`](ErrorKind::LockedDown):
    ///   there is no device, or not for this process; the message says what to do.
    /// - [`NotKcov`](ErrorKind::NotKcov): the path leads to something else.
    /// - [`SizeOutOfLimits`](ErrorKind::SizeOutOfLimits): the system does not allow a buffer of
    ///   this size.
    /// - [`OutOfMemory`](ErrorKind::OutOfMemory): the kernel could not allocate or map the buffer.
    /// - [`DescriptorOutOfLimits`](ErrorKind::DescriptorOutOfLimits): the process may have no more
    ///   descriptors, or none of at least [`min_fd`](Self::min_fd).
    pub fn open(self) -> Result<Device, Error> {
        let file = self.open_file()?;
        let system = file.system();
        let mut widths = system.widths.iter();
        let (width, words) = loop {
            let Some(&width) = widths.next() else {
                let error = Error::new(Operation::SetSize, ErrorKind::NotKcov);
                return Err(error.with_path(file.path()));
            };
            let words = self.size.words_for(system, width)?;
            match file.set_size(width, words) {
                Ok(()) => break (width, words),
                Err(errno) if errno == system.wrong_width && widths.len() > 0 => {}
                Err(errno) => return Err(file.error(Operation::SetSize)(errno)),
            }
        };
        let bytes = usize::try_from(words).ok().and_then(|words| words.checked_mul(width.bytes()));
        let bytes = bytes.ok_or_else(|| Error::new(Operation::Map, ErrorKind::OutOfMemory))?;
        let mapping =
            Mapping::new(&file, bytes, self.guard_pages).map_err(file.error(Operation::Map))?;
        let protection = self.protection;
        let identity = file.identity();
        let parts = Parts { mapping, file, builder: Some(self), stamp: 0, identity };
        let mut device = Device::new(parts, bytes, width);
        device.put_stamp();
        match protection {
            Protection::None => {}
            Protection::Pages => device.write_protect()?,
            #[cfg(feature = "pkeys")]
            Protection::Key => device.take_key()?,
        }
        Ok(device)
    }

    /// Opens the file and moves its descriptor.
    fn open_file(&self) -> Result<File, Error> {
        let file = match &self.place {
            Place::Path { path, checked } => File::open(path, *checked)?,
            #[cfg(feature = "fake")]
            Place::Fake(kernel) => kernel.open_file()?,
        };
        match self.min_fd {
            Some(min) => file.move_up(min),
            None => Ok(file),
        }
    }
}
