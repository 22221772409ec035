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
    protection: Protection,
    recoverable: bool,
}

/// What keeps the process from writing to the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protection {
    None,
    Pages,
    Key,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        Builder {
            path: sys::DEFAULT_PATH.into(),
            size: BufferSize::default(),
            guard_pages: 0,
            least_descriptor: None,
            protection: Protection::None,
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
        self.protection = Protection::Pages;
        self
    }

    /// Lets nobody write to the buffer at any time, by a memory protection key: a stray store faults
    /// between sessions and during them, and a system call that is told to write there fails.
    ///
    /// The kernel records all the same. What this crate stores itself, such as the 0 of a
    /// [reset](crate::Session::reset), it stores with the right to, which a thread gives itself and
    /// takes back without a system call. Of this and [`write_protected`](Self::write_protected) the
    /// later call counts. The device has its key, one of 15 of the process, until it is dropped.
    ///
    /// It is for mistakes: other processes, and a target that changes its own rights or its mappings,
    /// are not kept from writing.
    ///
    /// # Threads
    ///
    /// Rights are of each thread. The thread that opens may read the buffer, and so may those that it
    /// starts afterwards; a thread that enables a session or uses a
    /// [`ForkServer`](crate::ForkServer) may from then on. But a thread that was there before, and only
    /// reads a [`Trace`](crate::Trace) that another one has made, has to call
    /// [`Device::allow_reading`](crate::Device::allow_reading) first, or it faults. So has
    /// a signal handler: each begins without the right, also one that interrupts a thread that has it.
    ///
    /// # Platforms
    ///
    /// Linux on x86, also for 32-bit programs on a 64-bit kernel, where the processor has keys and the
    /// kernel uses them (`ospke` in /proc/cpuinfo). Elsewhere [`open`](Self::open) fails with
    /// [`NoProtectionKeys`](ErrorKind::NoProtectionKeys).
    ///
    /// # References
    ///
    /// pkeys(7).
    #[doc(alias = "pkey_alloc")]
    #[doc(alias = "pkey_mprotect")]
    pub fn write_protected_by_key(mut self) -> Builder {
        self.protection = Protection::Key;
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
    /// - [`NoProtectionKeys`](ErrorKind::NoProtectionKeys),
    ///   [`ProtectionKeysInUse`](ErrorKind::ProtectionKeysInUse): a key was asked for, and there are
    ///   none, or the process has all of them already.
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
        let mut mapping = sys::Mapping::new(&file, words * width.bytes(), self.guard_pages)
            .map_err(|errno| Error::from_errno(Operation::Map, errno))?;
        if self.protection == Protection::Key {
            mapping
                .set_key(new_key()?)
                .map_err(|errno| Error::from_errno(Operation::Protect, errno))?;
        }
        let write_protected = self.protection == Protection::Pages;
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

fn new_key() -> Result<sys::Key, Error> {
    sys::Key::new().map_err(|errno| {
        let error = Error::from_errno(Operation::AllocateKey, errno);
        match sys::Key::explain(errno) {
            Some(kind) => error.with_kind(kind),
            None => error,
        }
    })
}
