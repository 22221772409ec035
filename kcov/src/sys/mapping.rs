//! A mapped buffer: pages of the host, or memory of a fake kernel.

use super::{File, Look, Pages};
use crate::buffer::Width;
use std::ptr::NonNull;
#[cfg(feature = "fake")]
use std::sync::{Arc, atomic::AtomicU64};

/// A shared, writable mapping of a whole buffer, unmapped when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    pub(crate) memory: Memory,
    #[cfg(feature = "pkeys")]
    pub(crate) key: Option<super::Key>,
}

#[derive(Debug)]
pub(crate) enum Memory {
    Kernel(Pages),
    #[cfg(feature = "fake")]
    Fake(Arc<[AtomicU64]>),
}

impl Mapping {
    /// Maps `bytes` bytes of the device's buffer, with `guard_pages` inaccessible pages per side.
    pub(crate) fn new(file: &File, bytes: usize, guard_pages: usize) -> Result<Mapping, i32> {
        let memory = match file {
            File::Kernel(file, _) => Memory::Kernel(Pages::map(file, bytes, guard_pages)?),
            #[cfg(feature = "fake")]
            File::Fake(file) => {
                let memory = file.map(bytes)?;
                // Like a kernel, this maps parts of pages as whole pages. Buffers have no parts.
                assert!(bytes <= size_of_val(&*memory), "a buffer of whole pages");
                Memory::Fake(memory)
            }
        };
        Ok(Mapping::of(memory))
    }

    pub(crate) fn of(memory: Memory) -> Mapping {
        Mapping {
            memory,
            #[cfg(feature = "pkeys")]
            key: None,
        }
    }

    /// Start of the buffer, aligned to 8 bytes and valid as long as `self` lives.
    pub(crate) fn start(&self) -> NonNull<u64> {
        match &self.memory {
            Memory::Kernel(pages) => pages.start(),
            #[cfg(feature = "fake")]
            Memory::Fake(words) => NonNull::from(&**words).cast(),
        }
    }

    /// Makes the buffer writable or read-only for this process.
    pub(crate) fn set_writable(&self, writable: bool) -> Result<(), i32> {
        match &self.memory {
            Memory::Kernel(pages) => pages.set_writable(writable),
            #[cfg(feature = "fake")]
            Memory::Fake(_) => Ok(()),
        }
    }

    /// Checks that this buffer and the file still belong to one device. `is_free` tells whether
    /// nothing is traced into the buffer.
    pub(crate) fn look(
        &self,
        file: &File,
        stamp: u64,
        width: Width,
        is_free: impl FnOnce() -> bool,
    ) -> Look {
        match (&self.memory, file) {
            (Memory::Kernel(pages), File::Kernel(file, _)) => {
                pages.look(file, stamp, width, is_free)
            }
            #[cfg(feature = "fake")]
            _ => Look { stamp: is_free().then_some(stamp), file_is_ours: true },
        }
    }

    /// Unmaps the buffer if it is certainly still there, with the stamp in its last word. Otherwise
    /// leaves the range alone.
    pub(crate) fn abandon(self, stamp: u64) {
        match self.memory {
            Memory::Kernel(pages) => pages.abandon(stamp),
            #[cfg(feature = "fake")]
            Memory::Fake(_) => {}
        }
    }
}
