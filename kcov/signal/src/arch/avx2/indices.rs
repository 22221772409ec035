//! Computes which words of a map to load for signals.

use super::CHUNK;
use super::load::Loads;
use crate::ranges::Span;
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// The word indices for a chunk.
pub(super) struct Indices([MaybeUninit<Eight>; CHUNK]);

/// Indices for eight signals, two per 64 bits, in the order that packing two vectors leaves: 0, 1,
/// 4, 5, 2, 3, 6, 7.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Eight([u64; 4]);

impl From<__m256i> for Eight {
    #[inline]
    fn from(vector: __m256i) -> Eight {
        // SAFETY: both types have 32 bytes, and any bits are valid.
        unsafe { core::mem::transmute(vector) }
    }
}

impl Eight {
    /// Loads the words of the first four signals and of the last four.
    ///
    /// # Safety
    ///
    /// The caller must ensure that:
    ///
    /// - the processor has AVX2;
    /// - the indices are less than the number of words.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load(&self, words: Loads<'_>) -> [__m256i; 2] {
        let [first, second, third, fourth] = self.0;
        // SAFETY: the caller ensures AVX2 and the bound on all eight indices.
        unsafe { [words.load4_at([first, third]), words.load4_at([second, fourth])] }
    }
}

/// Packs the low halves of eight 64-bit numbers, in the order of [`Eight`].
///
/// # Safety
///
/// The caller must ensure that the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pack(numbers: [__m256i; 2]) -> __m256i {
    // SAFETY: the caller ensures AVX2, the only requirement.
    unsafe {
        let [low, high] = numbers.map(|four| _mm256_castsi256_ps(four));
        _mm256_castps_si256(_mm256_shuffle_ps::<0b10_00_10_00>(low, high))
    }
}

impl Indices {
    #[inline]
    pub(super) fn new() -> Indices {
        Indices([MaybeUninit::uninit(); CHUNK])
    }

    /// Prefetches the words of an eight.
    ///
    /// # Safety
    ///
    /// Same as [`of`](Self::of), and the caller must ensure that the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn prefetch(&self, eight: usize, words: Loads<'_>) {
        // SAFETY: the caller ensures the requirements of `of`.
        let Eight(pairs) = unsafe { self.of(eight) };
        for pair in pairs {
            words.prefetch((pair & 0xffff_ffff) as usize);
            words.prefetch((pair >> 32) as usize);
        }
    }

    /// The indices of an eight in the chunk.
    ///
    /// # Safety
    ///
    /// The caller must have made the indices of this eight.
    #[inline]
    pub(super) unsafe fn of(&self, eight: usize) -> &Eight {
        // SAFETY: the caller has made them, and `make` only writes within a chunk.
        unsafe { self.0.get_unchecked(eight).assume_init_ref() }
    }
}

/// Limits of a span: signals within have indices.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// Added to a signal, gives its offset.
    to_offset: __m256i,
    /// The last offset within the span, with its sign bit flipped: vector comparisons are signed.
    last: __m256i,
    /// The last index, in all eight lanes.
    last_index: __m256i,
}

/// Bounds of the offsets and indices made so far.
pub(super) struct Bounds {
    /// The OR of the high halves of all offsets.
    high: __m256i,
    /// The greatest index in each lane.
    greatest: __m256i,
}

impl Limits {
    /// # Safety
    ///
    /// The caller must ensure that:
    ///
    /// - the processor has AVX2;
    /// - the span is not empty, so that it has a last index.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn of(span: Span) -> Limits {
        // SAFETY: the caller ensures AVX2, the only requirement.
        unsafe {
            Limits {
                to_offset: _mm256_set1_epi64x((span.start as i64).wrapping_neg()),
                last: _mm256_set1_epi64x((span.bytes - 1) as i64 ^ i64::MIN),
                last_index: _mm256_set1_epi32((span.bytes / 64 - 1) as i32),
            }
        }
    }

    /// Bounds of an empty set.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn bounds(&self) -> Bounds {
        // SAFETY: the caller ensures AVX2, the only requirement.
        let zero = unsafe { _mm256_setzero_si256() };
        Bounds { high: zero, greatest: zero }
    }

    /// Makes the indices of eight signals. A signal outside the span gets an index within the span,
    /// and the bounds record that it is outside.
    ///
    /// # Safety
    ///
    /// The caller must ensure that:
    ///
    /// - the processor has AVX2;
    /// - `eight + SKIP / 8 % CHUNK` is within a chunk;
    /// - there are eight signals from `8 * eight + SKIP` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn make<const SKIP: usize>(
        &self,
        indices: &mut Indices,
        eight: usize,
        chunk: Loads<'_>,
        bounds: &mut Bounds,
    ) {
        // SAFETY: the caller ensures AVX2, the eight signals, and that the eight is within a chunk.
        unsafe {
            let numbers = chunk.load8_add::<SKIP>(8 * eight, self.to_offset);
            let [low, high] = numbers.map(|four| _mm256_castsi256_ps(four));
            let high_halves = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
            let offsets = pack(numbers);
            let found = _mm256_srli_epi32::<6>(offsets);
            bounds.high = _mm256_or_si256(bounds.high, high_halves);
            bounds.greatest = _mm256_max_epu32(bounds.greatest, found);
            let found = _mm256_min_epu32(found, self.last_index);
            indices.0.get_unchecked_mut(eight + SKIP / 8 % CHUNK).write(Eight::from(found));
        }
    }

    /// Whether all signals of the bounds are in the span.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn all_within(&self, bounds: &Bounds) -> bool {
        // SAFETY: the caller ensures AVX2, the only requirement.
        unsafe {
            let greatest = _mm256_max_epu32(bounds.greatest, self.last_index);
            let beyond = _mm256_xor_si256(greatest, self.last_index);
            let elsewhere = _mm256_or_si256(beyond, bounds.high);
            _mm256_testz_si256(elsewhere, elsewhere) != 0
        }
    }

    /// Returns eight bits, set for signals outside the span.
    ///
    /// # Safety
    ///
    /// The caller must ensure that:
    ///
    /// - the processor has AVX2;
    /// - the chunk has the eight.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn elsewhere(&self, chunk: Loads<'_>, eight: usize) -> u32 {
        // SAFETY: the caller ensures AVX2 and the eight signals.
        unsafe {
            let sign = _mm256_set1_epi64x(i64::MIN);
            let [low, high] = chunk.load8_add::<0>(8 * eight, self.to_offset).map(|offsets| {
                let beyond = _mm256_cmpgt_epi64(_mm256_xor_si256(offsets, sign), self.last);
                _mm256_movemask_pd(_mm256_castsi256_pd(beyond)) as u32
            });
            low | high << 4
        }
    }
}
