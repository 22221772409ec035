//! Looks up signals in a map's words.

use super::indices::Indices;
use super::load::Loads;
use crate::ranges::Span;
use crate::run::Run;
use core::arch::asm;
use core::arch::x86_64::*;

/// The words of a map for a span.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'m>(Loads<'m>);

impl<'m> Lookup<'m> {
    #[inline]
    pub(super) fn of(bits: Run<'m>, span: Span) -> Lookup<'m> {
        // Spans begin at word boundaries.
        Lookup(bits.skip((span.offset / 64) as usize).into())
    }

    /// Prefetches the words of an eight.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the processor has AVX2 and that the indices of the eight were
    /// made.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn prefetch(self, indices: &Indices, eight: usize) {
        // SAFETY: the caller ensures the same requirements.
        unsafe { indices.prefetch(eight, self.0) };
    }

    /// Looks up eight signals of a chunk. The result is valid for signals in the span.
    ///
    /// # Safety
    ///
    /// The caller must ensure that:
    ///
    /// - the processor has AVX2;
    /// - the chunk has eight signals from `8 * eight + SKIP` on;
    /// - their indices were made with the limits of the span.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn find<const SKIP: usize>(
        self,
        indices: &Indices,
        eight: usize,
        chunk: Loads<'_>,
    ) -> Found {
        // SAFETY: the caller ensures AVX2, the signals and their indices. No index exceeds the last
        // one of the span, which has a word by the invariant of `Known`.
        unsafe {
            let [low, high] = indices.of(eight + SKIP / 8).load(self.0);
            let places = _mm256_set1_epi64x(63);
            let [first, second] = chunk.load8_and::<SKIP>(8 * eight, places);
            Found([set(low, first), set(high, second)])
        }
    }
}

/// Result of a lookup of eight signals: the low bit is set for those seen.
#[derive(Clone, Copy)]
pub(super) struct Found([__m256i; 2]);

impl Found {
    /// Whether all signals of both results are known.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn both(self, other: Found) -> bool {
        // SAFETY: the caller ensures AVX2, the only requirement.
        unsafe {
            let low = _mm256_and_si256(self.0[0], other.0[0]);
            let high = _mm256_and_si256(self.0[1], other.0[1]);
            _mm256_testc_si256(_mm256_and_si256(low, high), _mm256_set1_epi64x(1)) != 0
        }
    }

    /// Returns eight bits, set for signals that are not known.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn missing(self) -> u32 {
        // SAFETY: the caller ensures AVX2, the only requirement.
        unsafe {
            let [low, high] = self.0.map(|four| {
                let top = _mm256_slli_epi64::<63>(four);
                _mm256_movemask_pd(_mm256_castsi256_pd(top)) as u32
            });
            !(low | high << 4) & 0xff
        }
    }
}

/// Shifts the bits at four places to the low bits.
///
/// # Safety
///
/// The caller must ensure that the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn set(words: __m256i, places: __m256i) -> __m256i {
    let bits: __m256i;
    // SAFETY: the caller ensures AVX2, which has the instruction; it has no other effect. Assembly,
    // because the intrinsic takes more instructions if the compiler cannot prove that places are
    // below 64.
    unsafe {
        asm!(
            "vpsrlvq {bits}, {words}, {places}",
            words = in(ymm_reg) words,
            places = in(ymm_reg) places,
            bits = lateout(ymm_reg) bits,
            options(nostack, preserves_flags, nomem, pure),
        );
    }
    bits
}
