//! Loads in assembly: to the compiler, they are no accesses that could race.

use crate::run::Run;
use core::arch::asm;
use core::arch::x86_64::{__m256i, _MM_HINT_T0, _mm_prefetch};
use core::marker::PhantomData;

/// Words that only the assembly in this file loads.
///
/// Others may write the words meanwhile. The processor loads each aligned 8 bytes at once, so like
/// a relaxed load this returns a value that the word had at some time. Any 64 bits are a valid
/// `u64`, and no bound depends on a word that others write.
///
/// Invariant: `start` is aligned to 8 bytes and valid for loads of `len` words during `'w`.
#[derive(Clone, Copy)]
pub(super) struct Loads<'w> {
    start: *const u64,
    len: usize,
    memory: PhantomData<Run<'w>>,
}

impl<'w> From<Run<'w>> for Loads<'w> {
    #[inline]
    fn from(run: Run<'w>) -> Loads<'w> {
        // The invariant holds: a run refers to `len` aligned words.
        Loads { start: run.start(), len: run.len(), memory: PhantomData }
    }
}

/// Defines a method that loads eight words with instructions that also apply an operation.
macro_rules! load8 {
    ($(#[$doc:meta])* $name:ident, $instruction:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// The caller must ensure that:
        ///
        /// - the processor has AVX2;
        /// - `index + SKIP + 8` is at most the number of words.
        #[inline]
        #[target_feature(enable = "avx2")]
        pub(super) unsafe fn $name<const SKIP: usize>(
            self,
            index: usize,
            operand: __m256i,
        ) -> [__m256i; 2] {
            debug_assert!(index + SKIP + 8 <= self.len);
            let (low, high): (__m256i, __m256i);
            // SAFETY: the caller ensures that the 64 bytes are words of `self`, which the invariant
            // makes valid. Both instructions accept any alignment.
            unsafe {
                asm!(
                    concat!($instruction, " {low}, {with}, [{start} + 8 * {index} + 8 * {skip}]"),
                    concat!($instruction, " {high}, {with}, [{start} + 8 * {index} + 8 * {skip} + 32]"),
                    start = in(reg) self.start,
                    index = in(reg) index,
                    skip = const SKIP,
                    with = in(ymm_reg) operand,
                    low = out(ymm_reg) low,
                    high = out(ymm_reg) high,
                    options(nostack, preserves_flags, readonly),
                );
            }
            [low, high]
        }
    };
}

impl Loads<'_> {
    /// The number of words before the first group of four aligned words.
    #[inline]
    pub(super) fn before_aligned(self) -> usize {
        (self.start.addr().wrapping_neg() / size_of::<u64>() % 4).min(self.len)
    }

    /// The words after the first `count`; none if there are fewer.
    #[inline]
    pub(super) fn skip(self, count: usize) -> Self {
        let count = count.min(self.len);
        // The invariant holds: the remaining words are words of `self`.
        Loads { start: self.start.wrapping_add(count), len: self.len - count, ..self }
    }

    /// The word at `index`.
    ///
    /// # Panics
    ///
    /// If `index` is out of bounds.
    #[inline]
    pub(super) fn load(self, index: usize) -> u64 {
        assert!(index < self.len);
        let word;
        // SAFETY: the assertion keeps the word within `self`, and the invariant makes it valid.
        unsafe {
            asm!(
                "mov {word}, qword ptr [{start} + 8 * {index}]",
                start = in(reg) self.start,
                index = in(reg) index,
                word = lateout(reg) word,
                options(nostack, preserves_flags, readonly),
            );
        }
        word
    }

    /// Prefetches a word if it exists.
    #[inline]
    pub(super) fn prefetch(self, index: usize) {
        let word = self.start.wrapping_add(index);
        // SAFETY: x86-64 includes SSE, and a prefetch of any address has no visible effect.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(word.cast()) };
    }

    load8!(
        /// Loads eight words and adds to each.
        load8_add,
        "vpaddq"
    );

    load8!(
        /// Loads eight words and masks each.
        load8_and,
        "vpand"
    );

    /// Loads four words. Each 64-bit argument holds two indices.
    ///
    /// # Safety
    ///
    /// The caller must ensure that:
    ///
    /// - the processor has AVX2;
    /// - the four indices are less than the number of words.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load4_at(self, [first, second]: [u64; 2]) -> __m256i {
        debug_assert!([first, second].iter().all(|pair| {
            ((pair & 0xffff_ffff) as usize) < self.len && ((pair >> 32) as usize) < self.len
        }));
        let four: __m256i;
        // SAFETY: the caller ensures that the four words are words of `self`, which the invariant
        // makes valid.
        unsafe {
            asm!(
                "mov {low:e}, {first:e}",
                "mov {low2:e}, {second:e}",
                "shr {first}, 32",
                "shr {second}, 32",
                "vmovq {four:x}, qword ptr [{start} + 8 * {low}]",
                "vmovq {upper:x}, qword ptr [{start} + 8 * {low2}]",
                "vmovhps {four:x}, {four:x}, qword ptr [{start} + 8 * {first}]",
                "vmovhps {upper:x}, {upper:x}, qword ptr [{start} + 8 * {second}]",
                "vinserti128 {four}, {four}, {upper:x}, 1",
                start = in(reg) self.start,
                first = inout(reg) first => _,
                second = inout(reg) second => _,
                low = out(reg) _,
                low2 = out(reg) _,
                four = out(ymm_reg) four,
                upper = out(ymm_reg) _,
                options(nostack, readonly, pure),
            );
        }
        four
    }
}
