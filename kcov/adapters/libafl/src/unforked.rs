//! Memory that fork(2) does not copy.

use crate::sys;
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::param::page_size;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Deref, DerefMut};
use std::ptr::{NonNull, null_mut};
use std::slice;

/// A vector of words. In a forked child they may all be 0.
///
/// After fork(2), the parent's first store to each page of a `Vec` faults and copies the page. On
/// Linux, stores to these pages do neither.
#[derive(Deserialize, Serialize)]
#[serde(from = "Vec<u64>", into = "Vec<u64>")]
pub(crate) struct Unforked {
    start: NonNull<u64>,
    len: usize,
    /// In words: whole pages, or 0 if nothing is mapped.
    capacity: usize,
}

// SAFETY: it owns its words, like a `Vec<u64>`.
unsafe impl Send for Unforked {}
// SAFETY: as above.
unsafe impl Sync for Unforked {}

impl Unforked {
    pub(crate) const fn new() -> Unforked {
        Unforked { start: NonNull::dangling(), len: 0, capacity: 0 }
    }

    /// Maps zeroed pages for at least this many words.
    fn with_len(len: usize) -> Unforked {
        let Some(bytes) = len.checked_mul(size_of::<u64>()).filter(|bytes| *bytes > 0) else {
            assert_eq!(len, 0, "too many words");
            return Unforked::new();
        };
        let bytes = bytes.next_multiple_of(page_size());
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a null hint and no `MAP_FIXED`, so no existing mapping is replaced.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, protection, MapFlags::PRIVATE) };
        let start = start.unwrap_or_else(|error| panic!("mapping {bytes} bytes: {error}"));
        // SAFETY: `mmap_anonymous` returned whole pages, and children may read any words there.
        unsafe { sys::wipe_in_children(start, bytes) };
        let start = NonNull::new(start.cast()).expect("mmap never returns null");
        Unforked { start, len, capacity: bytes / size_of::<u64>() }
    }

    /// Removes all words and keeps the memory.
    pub(crate) fn clear(&mut self) {
        self.len = 0;
    }

    /// Adds `more` words of any value and returns them.
    ///
    /// # Panics
    ///
    /// If there is no memory.
    pub(crate) fn grow(&mut self, more: usize) -> &mut [u64] {
        let before = self.len;
        let len = before + more;
        if len > self.capacity {
            let mut larger = Unforked::with_len(len.max(2 * self.capacity));
            larger[..before].copy_from_slice(self);
            *self = larger;
        }
        self.len = len;
        &mut self[before..]
    }
}

impl Deref for Unforked {
    type Target = [u64];

    fn deref(&self) -> &[u64] {
        // SAFETY: `with_len` mapped at least `len` words, zeroed, and only `drop` unmaps them. For no
        // words the pointer is aligned and not null.
        unsafe { slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}

impl DerefMut for Unforked {
    fn deref_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `deref`; the caller has the only reference.
        unsafe { slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl From<Vec<u64>> for Unforked {
    fn from(words: Vec<u64>) -> Unforked {
        let mut all = Unforked::with_len(words.len());
        all.copy_from_slice(&words);
        all
    }
}

impl From<Unforked> for Vec<u64> {
    fn from(words: Unforked) -> Vec<u64> {
        words.to_vec()
    }
}

impl Clone for Unforked {
    fn clone(&self) -> Unforked {
        Unforked::from(self.to_vec())
    }
}

/// Shows the number of words, not the words: there may be millions.
impl fmt::Debug for Unforked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Unforked").field("len", &self.len).finish_non_exhaustive()
    }
}

impl Drop for Unforked {
    fn drop(&mut self) {
        if self.capacity > 0 {
            let bytes = self.capacity * size_of::<u64>();
            // SAFETY: `with_len` mapped these pages, and no reference outlives `self`.
            let _ = unsafe { munmap(self.start.as_ptr().cast(), bytes) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg(target_os = "linux")]
    fn children_read_zeros() {
        use crate::{Ended, Fork, Spawn as _};
        let words = Unforked::from(vec![7; 1000]);
        // SAFETY: the child allocates nothing and takes no lock.
        let mut fork = unsafe { Fork::new() };
        let zeros = || assert!(words.iter().all(|word| *word == 0));
        let ended = fork.spawn(std::time::Duration::from_secs(60), zeros);
        assert_eq!(ended.unwrap(), Ended::Exited);
        assert!(words.iter().all(|word| *word == 7));
    }

    #[test]
    fn words_are_not_shown() {
        let words = Unforked::from(vec![7; 100_000]);
        assert_eq!(format!("{words:?}"), "Unforked { len: 100000, .. }");
    }

    #[test]
    fn words_stay_while_it_grows() {
        let mut words = Unforked::new();
        for round in 0..3000 {
            words.grow(1)[0] = round;
            words.grow(2).fill(round);
        }
        assert!(words.chunks(3).zip(0..).all(|(three, round)| three == [round; 3]));
        let copy = words.clone();
        words.clear();
        assert_eq!((words.len(), copy.len()), (0, 9000));
        let saved = postcard::to_allocvec(&copy).unwrap();
        assert_eq!(*postcard::from_bytes::<Unforked>(&saved).unwrap(), *copy);
    }
}
