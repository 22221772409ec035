//! Loads of several words at once, with AVX2.

use super::Run;
use core::arch::asm;
use core::arch::x86_64::__m256i;

/// A method that loads eight words, in an instruction that does something with each.
macro_rules! load8 {
    ($(#[$doc:meta])* $name:ident, $instruction:literal) => {
        $(#[$doc])*
        ///
        /// # Safety
        ///
        /// `index + SKIP + 8` is at most the length.
        #[inline]
        #[target_feature(enable = "avx2")]
        pub(crate) unsafe fn $name<const SKIP: usize>(
            self,
            index: usize,
            operand: __m256i,
        ) -> [__m256i; 2] {
            debug_assert!(index + SKIP + 8 <= self.len);
            let (low, high): (__m256i, __m256i);
            // SAFETY: within the run, by the caller's duty; for the rest as in `copy_words`.
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

impl Run<'_> {
    /// The number of words before the first one from which on four are aligned.
    #[inline]
    pub(crate) fn before_aligned(self) -> usize {
        (self.start.addr().wrapping_neg() / size_of::<u64>() % 4).min(self.len)
    }

    load8!(
        /// Loads eight words, each as atomically as [`load`](Self::load) does, and adds to each.
        load8_add,
        "vpaddq"
    );

    load8!(
        /// Loads eight words, each as atomically as [`load`](Self::load) does, and masks each.
        load8_and,
        "vpand"
    );

    /// Loads four words, each as atomically as [`load`](Self::load) does, whose indices lie
    /// two by two in 64 bits.
    ///
    /// # Safety
    ///
    /// The four indices are less than the length.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(crate) unsafe fn load4_at(self, [first, second]: [u64; 2]) -> __m256i {
        debug_assert!([first, second].iter().all(|pair| {
            ((pair & 0xffff_ffff) as usize) < self.len && ((pair >> 32) as usize) < self.len
        }));
        let four: __m256i;
        // SAFETY: within the run, by the caller's duty; for the rest as in `copy_words`.
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
