//! A mapped buffer: pages of the host, or memory of a fake kernel.

use super::{File, host};
use std::ptr::NonNull;
#[cfg(feature = "fake")]
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A shared, writable mapping of a whole buffer, given back when dropped.
#[derive(Debug)]
pub(crate) struct Mapping {
    memory: Memory,
    #[cfg(feature = "pkeys")]
    key: Option<super::Key>,
}

#[derive(Debug)]
enum Memory {
    Kernel(host::Pages),
    #[cfg(feature = "fake")]
    Fake(Arc<[AtomicU64]>),
}

impl Mapping {
    /// Maps `bytes` bytes of the device's buffer between `guard_pages` pages that nobody may access.
    pub(crate) fn new(file: &File, bytes: usize, guard_pages: usize) -> Result<Mapping, i32> {
        let memory = match file {
            File::Kernel(file) => Memory::Kernel(host::Pages::map(file, bytes, guard_pages)?),
            #[cfg(feature = "fake")]
            File::Fake(file) => Memory::Fake(file.map(bytes)?),
        };
        Ok(Mapping {
            memory,
            #[cfg(feature = "pkeys")]
            key: None,
        })
    }

    /// Maps what follows the first `offset` bytes of a device.
    #[cfg(feature = "proposed")]
    pub(crate) fn at(file: &File, bytes: usize, offset: u64) -> Result<Mapping, i32> {
        let memory = match file {
            File::Kernel(file) => Memory::Kernel(host::Pages::map_at(file, bytes, offset)?),
            #[cfg(feature = "fake")]
            File::Fake(_) => return Err(crate::error::linux::EINVAL),
        };
        Ok(Mapping {
            memory,
            #[cfg(feature = "pkeys")]
            key: None,
        })
    }

    /// Where the buffer starts: aligned to 8 bytes, and valid for as long as `self` lives.
    pub(crate) fn start(&self) -> NonNull<u64> {
        match &self.memory {
            Memory::Kernel(pages) => pages.start(),
            #[cfg(feature = "fake")]
            Memory::Fake(words) => NonNull::from(&**words).cast(),
        }
    }

    /// Lets the process write to the buffer, or only read it.
    pub(crate) fn set_writable(&self, writable: bool) -> Result<(), i32> {
        match &self.memory {
            Memory::Kernel(pages) => pages.set_writable(writable),
            #[cfg(feature = "fake")]
            Memory::Fake(_) => Ok(()),
        }
    }

    /// Whether the mapping still shows the buffer that the view does; if so, what is in the last word
    /// now. The last word of each page of the view gets a mark, which is looked for here, where there
    /// may be anything by now.
    pub(crate) fn shows(&self, view: &View) -> Option<u64> {
        match &self.memory {
            // Where nothing was mapped any more, the view itself may be.
            Memory::Kernel(pages) if pages.start() == view.0.start() => None,
            Memory::Kernel(pages) => {
                let marks = view.marks()?;
                pages.holds(&marks).then_some(*marks.last()?)
            }
            #[cfg(feature = "fake")]
            Memory::Fake(words) => words.last().map(|word| word.load(Ordering::Relaxed)),
        }
    }

    /// Whether the mapping shows what the view does at the end of each page. Stores nothing.
    pub(crate) fn agrees(&self, view: &View) -> bool {
        match (&self.memory, &view.0.memory) {
            (Memory::Kernel(pages), Memory::Kernel(view)) => pages.holds(&view.ends()),
            #[cfg(feature = "fake")]
            _ => true,
        }
    }

    /// Unmaps the buffer if it is certainly there, with the stamp in its last word; otherwise leaves
    /// alone whatever is there.
    pub(crate) fn abandon(self, stamp: u64) {
        match self.memory {
            Memory::Kernel(pages) => pages.abandon(stamp),
            #[cfg(feature = "fake")]
            Memory::Fake(_) => {}
        }
    }
}

#[cfg(feature = "pkeys")]
impl Mapping {
    /// Gives the buffer a key, which lives as long as the mapping.
    pub(crate) fn set_key(&mut self, key: super::Key) -> Result<(), i32> {
        self.key = Some(key);
        self.cover(self.key())
    }

    /// Gives the buffer a key that outlives the mapping, perhaps that of another one.
    pub(crate) fn cover(&self, key: Option<&super::Key>) -> Result<(), i32> {
        match (&self.memory, key) {
            (Memory::Kernel(pages), Some(key)) => pages.cover(key),
            _ => Ok(()),
        }
    }

    /// The key that is its own.
    #[inline]
    pub(crate) fn key(&self) -> Option<&super::Key> {
        self.key.as_ref()
    }
}

/// A second mapping of a buffer, for as long as the first one is looked for.
#[derive(Debug)]
pub(crate) struct View(Mapping);

impl View {
    pub(crate) fn new(file: &File, bytes: usize) -> Option<View> {
        Mapping::new(file, bytes, 0).ok().map(View)
    }

    /// The count.
    pub(crate) fn count(&self) -> u64 {
        self.head().load(Ordering::Relaxed)
    }

    /// Stores a count of 0.
    pub(crate) fn clear_count(&self) {
        self.head().store(0, Ordering::Relaxed);
    }

    fn head(&self) -> &AtomicU64 {
        // SAFETY: the view was just made and maps a page at least, which is aligned and accessed
        // atomically.
        unsafe { AtomicU64::from_ptr(self.0.start().as_ptr()) }
    }

    /// The last word of the buffer.
    pub(crate) fn last(&self) -> u64 {
        match &self.0.memory {
            Memory::Kernel(pages) => pages.ends().last().copied().unwrap_or(0),
            #[cfg(feature = "fake")]
            Memory::Fake(words) => words.last().map_or(0, |word| word.load(Ordering::Relaxed)),
        }
    }

    /// Stores a mark to the last word of each page, so never to the count word.
    fn marks(&self) -> Option<Vec<u64>> {
        match &self.0.memory {
            Memory::Kernel(pages) => Some(pages.mark()),
            #[cfg(feature = "fake")]
            Memory::Fake(_) => None,
        }
    }
}
