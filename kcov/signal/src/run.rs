//! Words that others may write meanwhile: each is loaded by the processor, and no reference to it is
//! formed.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;

use core::marker::PhantomData;
use core::sync::atomic::{AtomicU64, Ordering};

/// A run of 64-bit words, in a buffer or of the caller.
///
/// Invariant: for as long as `'w`, `start` is aligned to 8 bytes and valid for loads of `len` words;
/// if `quiet`, nobody writes to them meanwhile, and if not, the loads may be atomic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run<'w> {
    start: *const u64,
    len: usize,
    /// Through a pointer made of a reference to plain words no atomic load is allowed.
    quiet: bool,
    memory: PhantomData<&'w AtomicU64>,
}

impl<'w> From<&'w [u64]> for Run<'w> {
    #[inline]
    fn from(words: &'w [u64]) -> Run<'w> {
        Run { start: words.as_ptr(), len: words.len(), quiet: true, memory: PhantomData }
    }
}

impl<'w> From<&'w [AtomicU64]> for Run<'w> {
    #[inline]
    fn from(words: &'w [AtomicU64]) -> Run<'w> {
        let start = words.as_ptr().cast();
        Run { start, len: words.len(), quiet: false, memory: PhantomData }
    }
}

impl<'w> Run<'w> {
    /// Words that others may write.
    ///
    /// # Safety
    ///
    /// The caller upholds the invariant of the type.
    #[inline]
    pub(crate) unsafe fn new(start: *const u64, len: usize) -> Run<'w> {
        Run { start, len, quiet: false, memory: PhantomData }
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// # Safety
    ///
    /// `index` is less than the length.
    #[inline]
    pub(crate) unsafe fn load(self, index: usize) -> u64 {
        debug_assert!(index < self.len);
        // SAFETY: within the run, by the caller's duty.
        let word = unsafe { self.start.add(index) };
        if self.quiet {
            // SAFETY: aligned and valid, by the invariant, and nobody writes to it.
            return unsafe { *word };
        }
        // SAFETY: aligned and valid for atomic loads, by the invariant; nothing is stored through
        // the pointer.
        unsafe { AtomicU64::from_ptr(word.cast_mut()) }.load(Ordering::Relaxed)
    }

    /// Whether a bit is set, counted from the lowest one of the first word.
    ///
    /// # Safety
    ///
    /// `bit / 64` is less than the length.
    #[inline]
    pub(crate) unsafe fn bit(self, bit: u32) -> bool {
        // SAFETY: within the run, by the caller's duty.
        let word = unsafe { self.load(bit as usize / 64) };
        word >> (bit % 64) & 1 != 0
    }

    /// The words, each loaded when it is asked for.
    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = u64> + use<'w> {
        // SAFETY: the index is less than the length.
        (0..self.len).map(move |index| unsafe { self.load(index) })
    }

    /// The first `count` words, or all if there are fewer.
    #[inline]
    pub(crate) fn first(self, count: usize) -> Run<'w> {
        Run { len: self.len.min(count), ..self }
    }

    /// What is left behind the first `count` words, or nothing if there are fewer.
    #[inline]
    pub(crate) fn skip(self, count: usize) -> Run<'w> {
        let count = count.min(self.len);
        // SAFETY: within the run or at its end.
        Run { start: unsafe { self.start.add(count) }, len: self.len - count, ..self }
    }

    /// The words in pieces of that many, and what is left.
    #[inline]
    pub(crate) fn pieces(self, words: usize) -> impl Iterator<Item = Run<'w>> {
        (0..self.len).step_by(words).map(move |start| self.skip(start).first(words))
    }

    /// Copies words from the first one on, as many as there are and fit; how many.
    #[inline]
    pub(crate) fn copy(self, to: &mut [u64]) -> usize {
        let count = self.len.min(to.len());
        // SAFETY: there are that many words, valid and aligned by the invariant.
        unsafe { copy_words(self, &mut to[..count]) };
        count
    }
}

cfg_if::cfg_if! {
    if #[cfg(all(target_arch = "x86_64", not(miri)))] {
        use core::arch::asm;
        use core::arch::x86_64::{__m128i, _mm_storeu_si128};

        /// Copies words that others may write meanwhile.
        ///
        /// # Safety
        ///
        /// There are as many words as `to` has.
        #[inline]
        unsafe fn copy_words(from: Run<'_>, to: &mut [u64]) {
            let count = to.len() / 2;
            let mut pairs = to.chunks_exact_mut(2);
            for (index, pair) in pairs.by_ref().enumerate() {
                // SAFETY: the pair is among the words, by the caller's duty.
                let from = unsafe { from.start.add(2 * index) };
                let two: __m128i;
                // SAFETY: the 16 bytes are valid, by the caller's duty, and MOVDQU takes any
                // alignment. The load is the processor's: no reference is formed, and the language
                // sees no access that could race. Each word is one that was there at some time, as
                // after two relaxed loads, because the processor loads the aligned 8 bytes of each
                // half at once; and if one did not, any 64 bits are a `u64`, and nobody relies on a
                // word that others write.
                unsafe {
                    asm!(
                        "movdqu {two}, [{from}]",
                        two = out(xmm_reg) two,
                        from = in(reg) from,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                // SAFETY: the pair is 16 bytes of this function's caller, to write.
                unsafe { _mm_storeu_si128(pair.as_mut_ptr().cast(), two) };
            }
            if let [last] = pairs.into_remainder() {
                // SAFETY: it is the last one of the words, by the caller's duty.
                *last = unsafe { from.load(2 * count) };
            }
        }
    } else {
        /// Copies words that others may write meanwhile.
        ///
        /// # Safety
        ///
        /// There are as many words as `to` has.
        #[inline]
        unsafe fn copy_words(from: Run<'_>, to: &mut [u64]) {
            to.iter_mut().zip(from.iter()).for_each(|(to, word)| *to = word);
        }
    }
}
