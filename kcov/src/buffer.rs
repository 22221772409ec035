//! Access to the buffer, which others may write at any time: only atomic, and within our bounds.

use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use core::slice;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};

/// Width of the kernel's word. NetBSD's is always 64 bits; Linux's is that of the kernel's `long`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    W64,
    #[cfg_attr(
        any(target_pointer_width = "64", not(feature = "std")),
        allow(dead_code, reason = "no such kernel runs us, or we open no device")
    )]
    W32,
}

impl Width {
    /// Whether a kernel with 32-bit words can run this program. Tests assume that it can.
    const NARROW: bool = cfg!(any(not(target_pointer_width = "64"), test));

    pub(crate) const fn bytes(self) -> usize {
        match self {
            Width::W64 => 8,
            Width::W32 => 4,
        }
    }

    /// The width, as a compile-time constant if only one is possible.
    #[inline]
    const fn possible(self) -> Width {
        if Width::NARROW { self } else { Width::W64 }
    }
}

/// Words of a buffer, in place. They can only be loaded, and the kernel may store to them at any
/// time.
///
/// Words have 64 bits, except program counters under a 32-bit kernel: those have 32 bits.
///
/// ```compile_fail,E0608
/// # fn store(trace: kcov::Trace<'_, kcov::mode::TracePc>) {
/// trace.words()[0].store(1, std::sync::atomic::Ordering::Relaxed);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Words<'b>(pub(crate) Slice<'b>);

/// The words at their width. Private to the crate, because a reference to an atomic allows stores.
#[derive(Clone, Copy)]
pub(crate) enum Slice<'b> {
    U64(&'b [AtomicU64]),
    U32(&'b [AtomicU32]),
}

/// Evaluates one expression for words of either width.
macro_rules! each {
    ($words:expr, $each:ident => $do:expr) => {
        match $words.0 {
            Slice::U64($each) => $do,
            Slice::U32($each) => $do,
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

    /// Copies words in order, as many as fit in `to`, and returns their number.
    #[inline]
    #[allow(clippy::useless_conversion, reason = "not for words of 32 bits")]
    pub fn copy_to(self, to: &mut [u64]) -> usize {
        let count = self.len().min(to.len());
        each!(self, words => {
            to.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed).into());
        });
        count
    }

    /// The address of the first word, if words have 64 bits, for loops that this type cannot
    /// express. It is valid for atomic loads of [`len`](Self::len) words during `'b`. Nobody may
    /// store through it or load in another way, because the kernel may be storing.
    #[inline]
    pub fn as_ptr(self) -> Option<*const u64> {
        match self.0 {
            Slice::U64(words) => Some(words.as_ptr().cast()),
            Slice::U32(_) => None,
        }
    }

    /// The words after the first `start`; none if there are fewer.
    #[inline]
    pub(crate) fn skip(self, start: usize) -> Words<'b> {
        Words(match self.0 {
            Slice::U64(words) => Slice::U64(words.get(start..).unwrap_or_default()),
            Slice::U32(words) => Slice::U32(words.get(start..).unwrap_or_default()),
        })
    }

    /// The first `count` words; all if there are fewer.
    #[inline]
    pub(crate) fn first(self, count: usize) -> Words<'b> {
        Words(match self.0 {
            Slice::U64(words) => Slice::U64(words.get(..count).unwrap_or(words)),
            Slice::U32(words) => Slice::U32(words.get(..count).unwrap_or(words)),
        })
    }
}

/// Shows the number of words, not the words: there may be millions.
impl fmt::Debug for Slice<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{} words]", Words(*self).len())
    }
}

/// A view of a whole buffer.
///
/// Invariant: `bytes` is a multiple of 8 and at least 8; `start` is aligned to 8 bytes and valid
/// for atomic loads and stores of `bytes` bytes during `'b`; this process accesses the memory only
/// atomically.
#[derive(Clone, Copy, Debug)]
pub struct Buffer<'b> {
    start: NonNull<u64>,
    bytes: usize,
    width: Width,
    memory: PhantomData<&'b AtomicU64>,
}

// SAFETY: every access through the view is atomic, so any thread may use it.
unsafe impl Send for Buffer<'_> {}
// SAFETY: every access through the view is atomic, so threads may share it.
unsafe impl Sync for Buffer<'_> {}

impl<'b> Buffer<'b> {
    /// # Safety
    ///
    /// The caller must ensure that the type's invariant holds for `bytes` bytes from `start` on.
    pub(crate) unsafe fn new(start: NonNull<u64>, bytes: usize, width: Width) -> Buffer<'b> {
        Buffer { start, bytes, width: width.possible(), memory: PhantomData }
    }

    /// A view of 64-bit words that this process owns. An empty slice becomes a buffer with count 0.
    pub(crate) fn from_words(words: &'b [AtomicU64]) -> Buffer<'b> {
        static NONE: [AtomicU64; 1] = [AtomicU64::new(0)];
        let words = if words.is_empty() { &NONE } else { words };
        let start = NonNull::from(words).cast();
        // SAFETY: a non-empty slice of atomics is aligned, valid and only accessed atomically
        // during 'b.
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

    /// All words, including the count word, as 64-bit words.
    #[inline]
    pub(crate) fn words64(self) -> &'b [AtomicU64] {
        // SAFETY: the invariant makes `bytes` bytes aligned, valid and accessed only atomically.
        unsafe { slice::from_raw_parts(self.start.cast().as_ptr(), self.bytes / 8) }
    }

    /// All words, including the count word, at this width.
    #[inline]
    pub(crate) fn words(self, width: Width) -> Words<'b> {
        match width.possible() {
            Width::W64 => Words(Slice::U64(self.words64())),
            // SAFETY: the invariant makes `bytes` bytes aligned, valid and accessed only
            // atomically.
            Width::W32 => Words(Slice::U32(unsafe {
                slice::from_raw_parts(self.start.cast().as_ptr(), self.bytes / 4)
            })),
        }
    }

    /// Loads the count word at this width.
    ///
    /// The compiler must not move this load across a system call; the compiler fence holds even for
    /// calls declared not to write memory. The acquire fence makes the records of a remote section
    /// visible once the count includes them.
    #[inline]
    pub(crate) fn count(self, width: Width) -> u64 {
        compiler_fence(Ordering::SeqCst);
        let count = match width.possible() {
            Width::W64 => self.head64().load(Ordering::Relaxed),
            Width::W32 => self.head32().load(Ordering::Relaxed).into(),
        };
        fence(Ordering::Acquire);
        count
    }

    /// Stores the count word at this width.
    #[cfg(feature = "std")]
    #[inline]
    pub(crate) fn set_count(self, width: Width, count: u64) {
        match width.possible() {
            Width::W64 => self.head64().store(count, Ordering::Relaxed),
            Width::W32 => self.head32().store(count as u32, Ordering::Relaxed),
        }
        // The store must precede the system call to trace.
        compiler_fence(Ordering::SeqCst);
    }

    #[inline]
    fn head64(self) -> &'b AtomicU64 {
        // SAFETY: the invariant makes 8 bytes aligned, valid and accessed only atomically.
        unsafe { AtomicU64::from_ptr(self.start.as_ptr()) }
    }

    #[inline]
    fn head32(self) -> &'b AtomicU32 {
        // SAFETY: the first half of the word of `head64`, under the same invariant.
        unsafe { AtomicU32::from_ptr(self.start.cast().as_ptr()) }
    }
}

/// Tests of the words that a 32-bit kernel writes. The public API reads them only in 32-bit programs.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::{TraceCmp, TracePc};
    use crate::trace::Trace;
    use crate::{Comparison, Completeness, Pc};

    fn narrow(words: &[AtomicU64]) -> Buffer<'_> {
        let start = NonNull::from(words).cast();
        // SAFETY: the memory of `Buffer::from_words`, viewed as twice as many half-words.
        unsafe { Buffer::new(start, size_of_val(words), Width::W32) }
    }

    /// Two 32-bit words in memory order, as one 64-bit word.
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
        assert!(matches!(trace.words().0, Slice::U32(_)));
    }

    #[test]
    fn narrow_comparisons_are_words_of_64_bits() {
        let words = [1, 6, 7, 8, 9, 10].map(AtomicU64::new);
        let trace = Trace::freeze(narrow(&words), TraceCmp);
        assert_eq!((trace.len(), trace.capacity()), (1, 1));
        assert_eq!(trace.completeness(), Completeness::Truncated);
        assert_eq!(trace.get(0), Some(Comparison::from_words([6, 7, 8, 9])));
        assert!(matches!(trace.words().0, Slice::U64(_)));
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
