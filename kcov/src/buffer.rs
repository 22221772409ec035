//! The buffer as memory that others write: only atomic accesses, every index checked against the
//! size that this process asked for.

use crate::trace::Words;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence};

/// Bytes of the kernel's word. NetBSD's is always 64 bits; Linux's is the kernel's `long`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    W64,
    #[cfg_attr(target_pointer_width = "64", allow(dead_code, reason = "no such kernel runs us"))]
    W32,
}

impl Width {
    pub(crate) const fn bytes(self) -> usize {
        match self {
            Width::W64 => 8,
            Width::W32 => 4,
        }
    }

    /// The same, as a constant where only one is possible.
    #[inline]
    const fn possible(self) -> Width {
        if cfg!(all(target_pointer_width = "64", not(test))) { Width::W64 } else { self }
    }
}

/// A view of a whole buffer.
///
/// Invariant: `bytes` is at least 8; `start` is aligned to 8 bytes and valid for atomic loads and
/// stores of `bytes` bytes for as long as `'b`; nothing but atomic accesses of this process touches
/// the memory meanwhile. Where the memory is protected, an access that is not allowed faults, so none is
/// made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Buffer<'b> {
    start: NonNull<u64>,
    bytes: usize,
    width: Width,
    memory: PhantomData<&'b AtomicU64>,
}

// SAFETY: all accesses through the view are atomic, so it may be used from any thread.
unsafe impl Send for Buffer<'_> {}
// SAFETY: as for `Send`.
unsafe impl Sync for Buffer<'_> {}

impl<'b> Buffer<'b> {
    /// # Safety
    ///
    /// The caller upholds the invariant of the type for `words` words of the given width.
    pub(crate) unsafe fn new(start: NonNull<u64>, words: usize, width: Width) -> Buffer<'b> {
        let bytes = words * width.possible().bytes();
        Buffer { start, bytes, width, memory: PhantomData }
    }

    /// Words of 64 bits that this process owns. No words are taken for a count of 0.
    pub(crate) fn from_words(words: &'b [AtomicU64]) -> Buffer<'b> {
        static NONE: [AtomicU64; 1] = [AtomicU64::new(0)];
        let words = if words.is_empty() { &NONE } else { words };
        let start = NonNull::from(words).cast();
        // SAFETY: a slice of atomics is aligned, valid and atomically accessed for 'b, and this one
        // has an element.
        unsafe { Buffer::new(start, words.len(), Width::W64) }
    }

    /// The kernel's word width; a constant where only one is possible.
    #[inline]
    pub(crate) fn width(self) -> Width {
        self.width.possible()
    }

    /// Size of the buffer in bytes.
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    /// Loads the 64 bits at `index * 8` bytes.
    ///
    /// # Safety
    ///
    /// `index * 8 + 8 <= self.bytes()`.
    #[inline]
    pub(crate) unsafe fn load64(self, index: usize) -> u64 {
        // SAFETY: within the buffer, by the caller's duty.
        let word = unsafe { self.start.as_ptr().add(index) };
        // SAFETY: aligned, valid and atomically accessed, by the invariant.
        unsafe { AtomicU64::from_ptr(word) }.load(Ordering::Relaxed)
    }

    /// The words of 64 bits, from the first one on.
    #[cfg(feature = "std")]
    pub(crate) fn words64(self) -> impl Iterator<Item = u64> + use<'b> {
        // SAFETY: `index * 8 + 8` is at most the number of bytes.
        (0..self.bytes / 8).map(move |index| unsafe { self.load64(index) })
    }

    /// Stores 0 to the first words of 64 bits, as many as there are at most.
    #[cfg(feature = "std")]
    pub(crate) fn clear(self, words: usize) {
        for index in 0..words.min(self.bytes / 8) {
            // SAFETY: within the buffer, by the bound.
            let word = unsafe { self.start.as_ptr().add(index) };
            // SAFETY: aligned, valid and atomically accessed, by the invariant.
            unsafe { AtomicU64::from_ptr(word) }.store(0, Ordering::Relaxed);
        }
    }

    /// The part behind that many words, of a kernel whose words have 64 bits. `None` for others, and
    /// if there is nothing behind them.
    #[cfg(feature = "std")]
    pub(crate) fn behind(self, words: usize) -> Option<Buffer<'b>> {
        let before = words.checked_mul(8).filter(|before| *before < self.bytes / 8 * 8)?;
        if self.width() != Width::W64 {
            return None;
        }
        // SAFETY: at least 8 bytes of the buffer are behind these.
        let start = unsafe { self.start.add(words) };
        // A whole number of words behind an aligned address is aligned, and the rest of the
        // invariant holds for a part as for the whole.
        Some(Buffer { start, bytes: self.bytes - before, ..self })
    }

    /// Loads the 32 bits at `index * 4` bytes.
    ///
    /// # Safety
    ///
    /// `index * 4 + 4 <= self.bytes()`.
    #[inline]
    pub(crate) unsafe fn load32(self, index: usize) -> u32 {
        // SAFETY: within the buffer, by the caller's duty.
        let word = unsafe { self.start.cast::<u32>().as_ptr().add(index) };
        // SAFETY: aligned, valid and atomically accessed, by the invariant.
        unsafe { AtomicU32::from_ptr(word) }.load(Ordering::Relaxed)
    }

    /// The words behind the count word.
    ///
    /// # Safety
    ///
    /// `(1 + count) * width.bytes() <= self.bytes()`.
    pub(crate) unsafe fn records(self, width: Width, count: usize) -> Words<'b> {
        match width {
            Width::W64 => {
                // SAFETY: the word behind the count is in the buffer or at its end, which has `1 + count`.
                let start = unsafe { self.start.add(1) };
                // SAFETY: aligned, valid and atomically accessed for `'b`, by the invariant.
                Words::U64(unsafe { slice::from_raw_parts(start.cast().as_ptr(), count) })
            }
            Width::W32 => {
                // SAFETY: as above.
                let start = unsafe { self.start.cast::<u32>().add(1) };
                // SAFETY: as above.
                Words::U32(unsafe { slice::from_raw_parts(start.cast().as_ptr(), count) })
            }
        }
    }

    /// Reads the count word, which is `width` wide.
    ///
    /// System calls that the program made before are complete for this load: the fence keeps the
    /// compiler from moving it over a system call that was declared not to write memory. The load
    /// acquires, so that the records of a remote section are there when its count is.
    #[inline]
    pub(crate) fn count(self, width: Width) -> u64 {
        compiler_fence(Ordering::SeqCst);
        match width {
            Width::W64 => self.head64().load(Ordering::Acquire),
            Width::W32 => self.head32().load(Ordering::Acquire).into(),
        }
    }

    /// Stores the count word, which is `width` wide.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn set_count(self, width: Width, count: u64) {
        match width {
            Width::W64 => self.head64().store(count, Ordering::Relaxed),
            Width::W32 => self.head32().store(count as u32, Ordering::Relaxed),
        }
        // The system call to trace comes after the store.
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn head64(self) -> &'b AtomicU64 {
        // SAFETY: aligned, and the buffer has at least 8 bytes, by the invariant.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr()) }
    }

    #[inline]
    fn head32(self) -> &'b AtomicU32 {
        // SAFETY: as for `head64`.
        unsafe { AtomicU32::from_ptr(self.start.cast().as_ptr()) }
    }
}

#[cfg(test)]
mod tests {
    //! The layout under a 32-bit kernel, which the public API only shows to 32-bit programs.

    use super::*;
    use crate::mode::{TraceCmp, TracePc};
    use crate::trace::Trace;
    use crate::{Comparison, Pc};

    fn narrow(words: &[AtomicU64]) -> Buffer<'_> {
        let start = NonNull::from(words).cast();
        // SAFETY: the same memory as in `Buffer::from_words`, seen as twice as many words.
        unsafe { Buffer::new(start, words.len() * 2, Width::W32) }
    }

    /// Two words of 32 bits as one of 64, in the order of memory.
    fn pair(first: u32, second: u32) -> AtomicU64 {
        let mut bytes = [0; 8];
        bytes[..4].copy_from_slice(&first.to_ne_bytes());
        bytes[4..].copy_from_slice(&second.to_ne_bytes());
        AtomicU64::new(u64::from_ne_bytes(bytes))
    }

    #[test]
    fn narrow_pcs_are_words_of_32_bits() {
        let words = [pair(2, 0xc010_0000), pair(0xc010_0010, 0xdead_beef)];
        let trace = Trace::freeze(narrow(&words), TracePc);
        assert_eq!((trace.len(), trace.capacity(), trace.is_truncated()), (2, 3, false));
        assert_eq!(trace.iter().map(Pc::address).collect::<Vec<_>>(), [0xc010_0000, 0xc010_0010]);
    }

    #[test]
    fn narrow_comparisons_are_words_of_64_bits() {
        let words = [1, 6, 7, 8, 9, 10].map(AtomicU64::new);
        let trace = Trace::freeze(narrow(&words), TraceCmp);
        assert_eq!((trace.len(), trace.capacity(), trace.is_truncated()), (1, 1, true));
        assert_eq!(trace.get(0), Some(Comparison::from_words([6, 7, 8, 9])));
    }

    #[test]
    fn narrow_count_is_stored_in_its_own_width() {
        let words = [pair(9, 0xc010_0000)];
        narrow(&words).set_count(Width::W32, 1);
        assert_eq!(words[0].load(Ordering::Relaxed), pair(1, 0xc010_0000).into_inner());
    }

    #[test]
    fn a_part_is_a_buffer_of_its_own() {
        let words = [9, 9, 1, 7, 8].map(AtomicU64::new);
        let whole = Buffer::from_words(&words);
        let trace = Trace::freeze(whole.behind(2).unwrap(), TracePc);
        assert_eq!((trace.len(), trace.capacity()), (1, 2));
        assert_eq!(trace.get(0), Some(Pc::new(7)));
        whole.clear(2);
        assert_eq!(whole.words64().collect::<Vec<_>>(), [0, 0, 1, 7, 8]);
        whole.clear(usize::MAX);
        assert!(whole.words64().all(|word| word == 0));
        assert!(whole.behind(4).is_some());
        for words in [5, usize::MAX / 8, usize::MAX] {
            assert!(whole.behind(words).is_none(), "{words}");
        }
        assert!(narrow(&words).behind(1).is_none());
    }

    #[test]
    fn no_words_are_an_empty_trace() {
        let trace = Trace::freeze(Buffer::from_words(&[]), TracePc);
        assert_eq!((trace.len(), trace.capacity()), (0, 0));
    }
}
