//! Options for opening the device.

use crate::device::{Device, Parts};
use crate::error::{Error, ErrorKind, Operation};
use crate::size::BufferSize;
use crate::sys::{self, File, Mapping, Number, Place, Request};
use std::path::{Path, PathBuf};

/// Options for opening a [`Device`]. Setting one again replaces it.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    source: Source,
    size: BufferSize,
    place: Place,
    number: Option<Number>,
}

/// Where the device is.
#[derive(Clone, Debug)]
enum Source {
    Path {
        path: PathBuf,
        checked: bool,
    },
    #[cfg(feature = "fake")]
    Fake(crate::fake::Kernel),
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            source: Source::Path { path: sys::DEFAULT_PATH.into(), checked: true },
            size: BufferSize::words(256 << 10),
            place: Place::default(),
            number: None,
        }
    }

    #[cfg(feature = "fake")]
    pub(crate) fn of_fake(kernel: crate::fake::Kernel) -> Builder {
        Builder { source: Source::Fake(kernel), ..Builder::new() }
    }

    /// Opens this file instead of the system's default device.
    ///
    /// Before any request, [`open`](Self::open) checks the file: it must be a regular file of
    /// debugfs on Linux, or a device with kcov's major number on NetBSD. Another file of debugfs
    /// gets the request that sets the size, which its driver refuses.
    pub fn path(mut self, path: impl AsRef<Path>) -> Builder {
        self.source = Source::Path { path: path.as_ref().to_owned(), checked: true };
        self
    }

    /// Opens this file without making sure that it is a kcov device. For systems with the device
    /// elsewhere, such as gVisor.
    ///
    /// # Safety
    ///
    /// The caller must ensure that each file that this builder or a clone of it opens is a kcov
    /// device with this system's interface; a relative path may lead to another file later. Another
    /// driver may treat the integer argument of a request as a pointer.
    pub unsafe fn path_unchecked(mut self, path: impl AsRef<Path>) -> Builder {
        self.source = Source::Path { path: path.as_ref().to_owned(), checked: false };
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
        self.place.guard_pages = pages;
        self
    }

    /// Maps the buffer at this address, away from those that a target maps or unmaps. Nothing is
    /// replaced: [`open`](Self::open) fails if the addresses, with those of
    /// [guard pages](Self::guard_pages), are not free.
    pub fn address(mut self, address: usize) -> Builder {
        self.place.address = Some(address);
        self
    }

    /// Keeps the buffer out of the memory of children of fork(2), except for its first page, with
    /// the count. Then fork(2) is faster, and a child can forge no more records than fit in a page.
    ///
    /// A child may still enable the device, end its session and drop both.
    ///
    /// # Safety
    ///
    /// In a child, the caller must not make or read a trace of the device, not even one from before
    /// the fork, use its [remote session](crate::remote::RemoteSession) except to drop it, nor use or
    /// drop a session of the feature `proposed`. The other addresses are free there, or something
    /// else's.
    ///
    /// # Platforms
    ///
    /// madvise(2) with `MADV_DONTFORK` on Linux, minherit(2) on NetBSD.
    #[doc(alias = "MADV_DONTFORK")]
    pub unsafe fn not_inherited(mut self) -> Builder {
        self.place.not_inherited = true;
        self
    }

    /// Moves the file descriptor to the lowest free number that is at least `min`, away from
    /// targets that close or replace low numbers. It is close-on-exec, as always. Replaces
    /// [`fd`](Self::fd).
    pub fn min_fd(mut self, min: i32) -> Builder {
        self.number = Some(Number::AtLeast(min));
        self
    }

    /// Moves the file descriptor to this number, for targets that have to spare it.
    /// [`open`](Self::open) fails if it is in use. Replaces [`min_fd`](Self::min_fd).
    pub fn fd(mut self, fd: i32) -> Builder {
        self.number = Some(Number::Exactly(fd));
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
    /// - [`AddressInUse`](ErrorKind::AddressInUse): something else is at [`address`](Self::address).
    /// - [`DescriptorOutOfLimits`](ErrorKind::DescriptorOutOfLimits),
    ///   [`DescriptorInUse`](ErrorKind::DescriptorInUse): the process may have no more descriptors,
    ///   or not the one that [`min_fd`](Self::min_fd) or [`fd`](Self::fd) asks for.
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
            match file.request(Request::SetSize(width, words)) {
                Ok(()) => break (width, words),
                Err(errno) if errno == system.wrong_width && widths.len() > 0 => {}
                Err(errno) => return Err(file.error(Operation::SetSize)(errno)),
            }
        };
        let bytes = usize::try_from(words).ok().and_then(|words| words.checked_mul(width.bytes()));
        let bytes = bytes.ok_or_else(|| Error::new(Operation::Map, ErrorKind::OutOfMemory))?;
        let mapping = Mapping::new(&file, bytes, self.place);
        let mapping = mapping.map_err(file.error(Operation::Map))?;
        Ok(Device::new(Parts { mapping, file }, bytes, width))
    }

    /// Opens the file and moves its descriptor.
    fn open_file(&self) -> Result<File, Error> {
        let file = match &self.source {
            Source::Path { path, checked } => File::open(path, *checked)?,
            #[cfg(feature = "fake")]
            Source::Fake(kernel) => kernel.open_file()?,
        };
        match self.number {
            Some(number) => file.move_to(number),
            None => Ok(file),
        }
    }
}
