//! How the device is opened.

use crate::device::{Device, Parts};
use crate::error::{Error, ErrorKind, Operation};
use crate::size::BufferSize;
use crate::sys::{self, File, Mapping};
use std::path::{Path, PathBuf};

/// How to open a [`Device`].
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    place: Place,
    size: BufferSize,
    guard_pages: usize,
    min_fd: Option<i32>,
    protection: Protection,
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

/// What keeps the process from writing to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Protection {
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

    /// Opens this file instead of the system's usual one.
    ///
    /// Before any request, [`open`](Self::open) makes sure that the file is what it should be: a
    /// regular file of debugfs on Linux, a device with the major number of kcov on NetBSD.
    pub fn path(mut self, path: impl AsRef<Path>) -> Builder {
        self.place = Place::Path { path: path.as_ref().to_owned(), checked: true };
        self
    }

    /// Opens this file without making sure that it is a kcov device, for systems that have theirs
    /// elsewhere, such as gVisor.
    ///
    /// # Safety
    ///
    /// The file is a kcov device of the interface that this system has. Another driver may take the
    /// number that a request carries for a pointer.
    pub unsafe fn path_unchecked(mut self, path: impl AsRef<Path>) -> Builder {
        self.place = Place::Path { path: path.as_ref().to_owned(), checked: false };
        self
    }

    /// Asks for a buffer of at least this size.
    pub fn size(mut self, size: BufferSize) -> Builder {
        self.size = size;
        self
    }

    /// Puts this many inaccessible pages before and after the buffer, so that a target that overruns
    /// its own memory faults instead of forging coverage.
    pub fn guard_pages(mut self, pages: usize) -> Builder {
        self.guard_pages = pages;
        self
    }

    /// Moves the descriptor to the lowest free number that is at least `min`, out of the way of a
    /// target that closes or replaces low ones. It is close-on-exec, as always.
    pub fn min_fd(mut self, min: i32) -> Builder {
        self.min_fd = Some(min);
        self
    }

    /// Write-protects the buffer while no session is enabled, so that a stray store faults.
    ///
    /// The kernel records all the same. Each session costs two more system calls, one before it is
    /// enabled and one after it is disabled, so that the trace does not show them; so does
    /// [`ChildBuffer::reset`](crate::ChildBuffer::reset). The buffers of NetBSD's sources of remote
    /// coverage stay writable.
    pub fn write_protected(mut self) -> Builder {
        self.protection = Protection::Pages;
        self
    }

    /// Write-protects the buffer at all times, by a memory protection key: a stray store faults
    /// between sessions and during them, and a system call that is told to write there fails.
    ///
    /// The kernel records all the same. What this crate stores itself, such as the 0 of a
    /// [reset](crate::Session::reset), it stores with the right to, which a thread gives itself and
    /// takes back without a system call. The last of this and
    /// [`write_protected`](Self::write_protected) wins. The device keeps its key, one of the process's
    /// 15, until it is dropped.
    ///
    /// This is for mistakes. It does not stop other processes, nor a target that changes its own
    /// rights or its mappings.
    ///
    /// # Safety
    ///
    /// Reading a [`Trace`](crate::Trace) of such a device faults on a thread that lacks the right to
    /// read. These have it: the thread that opens the device, the threads that it starts afterwards,
    /// and a thread that enabled a session or read through a [`ChildBuffer`](crate::ChildBuffer). On
    /// any other thread, and in every signal handler, call
    /// [`allow_reading`](crate::Device::allow_reading) before you read a trace.
    ///
    /// # Platforms
    ///
    /// Linux on x86, also for 32-bit programs under a 64-bit kernel, if the processor has keys and the
    /// kernel uses them (`ospke` in /proc/cpuinfo). Elsewhere [`open`](Self::open) fails with
    /// [`NoProtectionKeys`](ErrorKind::NoProtectionKeys).
    ///
    /// # References
    ///
    /// pkeys(7).
    #[cfg(feature = "pkeys")]
    #[doc(alias = "pkey_alloc")]
    #[doc(alias = "pkey_mprotect")]
    pub unsafe fn write_protected_by_key(mut self) -> Builder {
        self.protection = Protection::Key;
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
    ///   descriptor of at least [`min_fd`](Self::min_fd).
    #[cfg_attr(
        feature = "pkeys",
        doc = "- [`NoProtectionKeys`](ErrorKind::NoProtectionKeys), \
               [`ProtectionKeysInUse`](ErrorKind::ProtectionKeysInUse): a key was asked for and \
               there is none."
    )]
    pub fn open(self) -> Result<Device, Error> {
        let file = self.open_file()?;
        let system = file.system();
        let mut widths = system.widths.iter();
        let (width, words) = loop {
            let Some(&width) = widths.next() else {
                return Err(self.about_path(Error::new(Operation::SetSize, ErrorKind::NotKcov)));
            };
            let words = self.size.words_for(system, width)?;
            match file.set_size(width, words) {
                Ok(()) => break (width, words),
                Err(errno) if errno == system.wrong_width && widths.len() > 0 => {}
                Err(errno) => return Err(self.about_path(file.error(Operation::SetSize)(errno))),
            }
        };
        let bytes = usize::try_from(words).ok().and_then(|words| words.checked_mul(width.bytes()));
        let bytes = bytes.ok_or_else(|| Error::new(Operation::Map, ErrorKind::OutOfMemory))?;
        let mapping = Mapping::new(&file, bytes, self.guard_pages)
            .map_err(|errno| self.about_path(file.error(Operation::Map)(errno)))?;
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

    fn about_path(&self, error: Error) -> Error {
        match &self.place {
            Place::Path { path, .. } => error.with_path(path),
            #[cfg(feature = "fake")]
            Place::Fake(_) => error,
        }
    }
}
