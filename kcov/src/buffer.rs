//! The buffer as memory that others write: atomic accesses only, bounds that this process chose.

use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// Size of the kernel's word. NetBSD's is always 64 bits; Linux's is the kernel's `long`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    W64,
    #[cfg_attr(target_pointer_width = "64", allow(dead_code, reason = "no such kernel runs us"))]
    W32,
}

impl Width {
    /// Whether a kernel with 32-bit words can run this program. The tests pretend that it can.
    const NARROW: bool = cfg!(any(not(target_pointer_width = "64"), test));

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Width::W64 => 8,
            Width::W32 => 4,
        }
    }

    /// A constant where only one width is possible.
    #[inline]
    const fn possible(self) -> Width {
        if Width::NARROW { self } else { Width::W64 }
    }
}

/// Words of a buffer, where they lie. The kernel may write to them at any time.
///
/// Words are 64 bits wide, except program counters under a 32-bit kernel, which this can only be if
/// the program is a 32-bit one.
#[derive(Clone, Copy, Debug)]
pub enum Words<'b> {
    /// Words of 64 bits.
    U64(&'b [AtomicU64]),
    /// Words of 32 bits.
    U32(&'b [AtomicU32]),
}

/// The same expression for words of either width.
macro_rules! each {
    ($words:expr, $each:ident => $do:expr) => {
        match $words {
            Words::U64($each) => $do,
            Words::U32($each) => $do,
        }
    };
}

impl<'b> Words<'b> {
    /// Number of words.
    #[inline]
    pub fn len(self) -> usize {
        each!(self, words => words.len())
    }

    /// Whether there are no words.
    #[inline]
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Loads the word at `index`.
    #[inline]
    #[allow(clippy::useless_conversion, reason = "not for words of 32 bits")]
    pub fn get(self, index: usize) -> Option<u64> {
        each!(self, words => Some(words.get(index)?.load(Ordering::Relaxed).into()))
    }

    /// Copies words from the first one on, as many as fit, and returns how many.
    #[inline]
    #[allow(clippy::useless_conversion, reason = "not for words of 32 bits")]
    pub fn copy_to(self, to: &mut [u64]) -> usize {
        let count = self.len().min(to.len());
        each!(self, words => {
            to.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed).into());
        });
        count
    }

    /// The words from `start` on; none if there are fewer.
    #[inline]
    pub(crate) fn skip(self, start: usize) -> Words<'b> {
        match self {
            Words::U64(words) => Words::U64(words.get(start..).unwrap_or_default()),
            Words::U32(words) => Words::U32(words.get(start..).unwrap_or_default()),
        }
    }

    /// The first `count` words; all if there are fewer.
    #[inline]
    pub(crate) fn first(self, count: usize) -> Words<'b> {
        match self {
            Words::U64(words) => Words::U64(words.get(..count).unwrap_or(words)),
            Words::U32(words) => Words::U32(words.get(..count).unwrap_or(words)),
        }
    }
}

/// A view of a whole buffer.
///
/// Invariant: `bytes` is a multiple of 8 and at least 8; `start` is aligned to 8 bytes and valid for
/// atomic loads and stores of `bytes` bytes for as long as `'b`; this process accesses the memory
/// atomically only. Where the memory is write-protected, a store faults, so none is made.
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
    /// The invariant of the type holds for `bytes` bytes from `start` on.
    pub(crate) unsafe fn new(start: NonNull<u64>, bytes: usize, width: Width) -> Buffer<'b> {
        Buffer { start, bytes, width: width.possible(), memory: PhantomData }
    }

    /// 64-bit words that this process owns. No words are a count of 0.
    pub(crate) fn from_words(words: &'b [AtomicU64]) -> Buffer<'b> {
        static NONE: [AtomicU64; 1] = [AtomicU64::new(0)];
        let words = if words.is_empty() { &NONE } else { words };
        let start = NonNull::from(words).cast();
        // SAFETY: a slice of atomics is aligned, valid and atomically accessed for 'b, and this one
        // is not empty.
        unsafe { Buffer::new(start, size_of_val(words), Width::W64) }
    }

    #[inline]
    pub(crate) fn width(self) -> Width {
        self.width.possible()
    }

    /// Size of the buffer in bytes.
    #[inline]
    pub(crate) fn bytes(self) -> usize {
        self.bytes
    }

    /// All words, the count word included, as words of 64 bits.
    #[inline]
    pub(crate) fn words64(self) -> &'b [AtomicU64] {
        // SAFETY: aligned, valid and atomically accessed for 'b, by the invariant.
        unsafe { slice::from_raw_parts(self.start.cast().as_ptr(), self.bytes / 8) }
    }

    /// All words, the count word included, at this width.
    #[inline]
    pub(crate) fn words(self, width: Width) -> Words<'b> {
        match width.possible() {
            Width::W64 => Words::U64(self.words64()),
            // SAFETY: aligned, valid and atomically accessed for 'b, by the invariant.
            Width::W32 => Words::U32(unsafe {
                slice::from_raw_parts(self.start.cast().as_ptr(), self.bytes / 4)
            }),
        }
    }

    /// Loads the count word, which is `width` wide.
    ///
    /// The compiler may move this load neither before nor behind a system call: the fence covers
    /// those that were declared not to write memory. It acquires, so that the records of a remote
    /// section are there once the count says so.
    #[inline]
    pub(crate) fn count(self, width: Width) -> u64 {
        compiler_fence(Ordering::SeqCst);
        // Relaxed, because only such a load may be made from memory that is mapped for reading alone.
        let count = match width.possible() {
            Width::W64 => self.head64().load(Ordering::Relaxed),
            Width::W32 => self.head32().load(Ordering::Relaxed).into(),
        };
        fence(Ordering::Acquire);
        count
    }

    /// Stores the count word, which is `width` wide.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn set_count(self, width: Width, count: u64) {
        match width.possible() {
            Width::W64 => self.head64().store(count, Ordering::Relaxed),
            Width::W32 => self.head32().store(count as u32, Ordering::Relaxed),
        }
        // The system call to trace comes after the store.
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn head64(self) -> &'b AtomicU64 {
        // SAFETY: aligned and at least 8 bytes, atomically accessed for 'b, by the invariant.
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
    use crate::{Comparison, Completeness, Pc};

    fn narrow(words: &[AtomicU64]) -> Buffer<'_> {
        let start = NonNull::from(words).cast();
        // SAFETY: the same memory as in `Buffer::from_words`, seen as twice as many words.
        unsafe { Buffer::new(start, size_of_val(words), Width::W32) }
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
        assert_eq!(trace.iter().next_back(), trace.get(1));
        let mut copy = [0; 3];
        assert_eq!(trace.words().copy_to(&mut copy), 2);
        assert_eq!(copy, [0xc010_0000, 0xc010_0010, 0]);
        assert!(matches!(trace.words(), Words::U32(_)));
    }

    #[test]
    fn narrow_comparisons_are_words_of_64_bits() {
        let words = [1, 6, 7, 8, 9, 10].map(AtomicU64::new);
        let trace = Trace::freeze(narrow(&words), TraceCmp);
        assert_eq!((trace.len(), trace.capacity()), (1, 1));
        assert_eq!(trace.completeness(), Completeness::Truncated);
        assert_eq!(trace.get(0), Some(Comparison::from_words([6, 7, 8, 9])));
        assert!(matches!(trace.words(), Words::U64(_)));
    }

    #[test]
    fn narrow_count_is_stored_in_its_own_width() {
        let words = [pair(9, 0xc010_0000)];
        narrow(&words).set_count(Width::W32, 1);
        assert_eq!(words[0].load(Ordering::Relaxed), pair(1, 0xc010_0000).into_inner());
    }

    #[test]
    fn no_words_are_an_empty_trace() {
        let trace = Trace::freeze(Buffer::from_words(&[]), TracePc);
        assert_eq!((trace.len(), trace.capacity()), (0, 0));
    }
}
