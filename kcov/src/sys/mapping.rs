//! A mapped buffer: pages of the host, or memory of a fake kernel.

use super::{File, Pages};
use std::ptr::NonNull;

/// Where and how to map a buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Place {
    /// The address of the first page, if it must be this one.
    pub(crate) address: Option<usize>,
    /// The number of inaccessible pages on each side.
    pub(crate) guard_pages: usize,
    /// Whether children of fork(2) do without all pages but the first.
    pub(crate) not_inherited: bool,
}

/// A shared, writable mapping of a whole buffer, unmapped when dropped.
#[derive(Debug)]
pub(crate) enum Mapping {
    Kernel(Pages),
    #[cfg(feature = "fake")]
    Fake(crate::fake::Memory),
}

impl Mapping {
    /// Maps `bytes` bytes of the device's buffer.
    pub(crate) fn new(file: &File, bytes: usize, place: Place) -> Result<Mapping, i32> {
        match file {
            File::Kernel(file, _) => Pages::map(file, bytes, place).map(Mapping::Kernel),
            #[cfg(feature = "fake")]
            File::Fake(file) => {
                let memory = file.map(bytes)?;
                // Like a kernel, this maps parts of pages as whole pages. Buffers have no parts.
                assert!(bytes <= size_of_val(&*memory), "a buffer of whole pages");
                Ok(Mapping::Fake(memory))
            }
        }
    }

    /// Start of the buffer, aligned to 8 bytes and valid as long as `self` lives. In a child, only the
    /// first page may be: see [`Place::not_inherited`].
    pub(crate) fn start(&self) -> NonNull<u64> {
        match self {
            Mapping::Kernel(pages) => pages.start(),
            #[cfg(feature = "fake")]
            Mapping::Fake(words) => NonNull::from(&**words).cast(),
        }
    }

    /// Checks that the first `bytes` bytes can be read. Changes nothing and cannot fault.
    pub(crate) fn check(&self, bytes: usize) -> Result<(), i32> {
        match self {
            Mapping::Kernel(pages) => pages.check(bytes),
            #[cfg(feature = "fake")]
            Mapping::Fake(_) => Ok(()),
        }
    }
}
