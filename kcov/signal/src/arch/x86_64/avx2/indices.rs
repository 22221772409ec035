//! From signals to the words of a map that know of them.

use super::CHUNK;
use super::load::Loads;
use crate::ranges::{CELL, Span};
use core::arch::x86_64::*;
use core::mem::MaybeUninit;

/// The indices of the words of a chunk.
pub(super) struct Indices([MaybeUninit<Eight>; CHUNK]);

/// Those of eight signals, two in each 64 bits, in the order that packing two vectors leaves: 0, 1,
/// 4, 5, 2, 3, 6, 7.
#[derive(Clone, Copy)]
#[repr(align(32))]
pub(super) struct Eight([u64; 4]);

impl From<__m256i> for Eight {
    #[inline]
    fn from(vector: __m256i) -> Eight {
        // SAFETY: as many bytes, of whatever bits.
        unsafe { core::mem::transmute(vector) }
    }
}

impl Eight {
    /// Loads the words of the first four signals, and of the others.
    ///
    /// # Safety
    ///
    /// - The processor has AVX2.
    /// - The indices are less than the number of words.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn load(&self, words: Loads<'_>) -> [__m256i; 2] {
        let [first, second, third, fourth] = self.0;
        // SAFETY: this function requires AVX2 and the bound on the indices, and these are all eight.
        unsafe { [words.load4_at([first, third]), words.load4_at([second, fourth])] }
    }
}

/// The low halves of eight numbers of 64 bits, in the order of [`Eight`].
///
/// # Safety
///
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
pub(super) unsafe fn pack(numbers: [__m256i; 2]) -> __m256i {
    // SAFETY: this function requires AVX2, and nothing else is needed.
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

    /// Fetches the words of an eight into the cache.
    ///
    /// # Safety
    ///
    /// As for [`of`](Self::of).
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn prefetch(&self, eight: usize, words: Loads<'_>) {
        // SAFETY: this function requires what `of` does.
        let Eight(pairs) = unsafe { self.of(eight) };
        for pair in pairs {
            words.prefetch((pair & 0xffff_ffff) as usize);
            words.prefetch((pair >> 32) as usize);
        }
    }

    /// Those of an eight of the chunk.
    ///
    /// # Safety
    ///
    /// The indices of the eight were made.
    #[inline]
    pub(super) unsafe fn of(&self, eight: usize) -> &Eight {
        // SAFETY: this function requires that they were made, which only happens within a chunk.
        unsafe { self.0.get_unchecked(eight).assume_init_ref() }
    }
}

/// What signals of a span have indices.
#[derive(Clone, Copy)]
pub(super) struct Limits {
    /// What makes an offset of a signal when it is added.
    to_offset: __m256i,
    /// The last offset within the span, its sign changed: vectors compare as if there were one.
    last: __m256i,
    /// The last index, eight times.
    last_index: __m256i,
}

/// The bounds of what indices were made of.
pub(super) struct Bounds {
    /// All high halves of offsets, by or.
    high: __m256i,
    /// The greatest indices.
    greatest: __m256i,
}

impl Limits {
    /// # Safety
    ///
    /// - The processor has AVX2.
    /// - The span is not empty, or the last index would not be one.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn of<const PACKED: bool>(span: Span) -> Limits {
        let bytes_of_word = if PACKED { CELL } else { 64 };
        // SAFETY: this function requires AVX2, and nothing else is needed.
        unsafe {
            Limits {
                to_offset: _mm256_set1_epi64x((span.start as i64).wrapping_neg()),
                last: _mm256_set1_epi64x((span.bytes - 1) as i64 ^ i64::MIN),
                last_index: _mm256_set1_epi32((span.bytes / bytes_of_word - 1) as i32),
            }
        }
    }

    /// Bounds of nothing.
    ///
    /// # Safety
    ///
    /// The processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn bounds(&self) -> Bounds {
        // SAFETY: this function requires AVX2, and nothing else is needed.
        let zero = unsafe { _mm256_setzero_si256() };
        Bounds { high: zero, greatest: zero }
    }

    /// Makes the indices of eight signals. Those of signals which are not in the span are some of
    /// the span all the same, and the bounds show that there are such.
    ///
    /// # Safety
    ///
    /// - The processor has AVX2.
    /// - `eight + SKIP / 8 % CHUNK` is within a chunk.
    /// - There are eight signals from `8 * eight + SKIP` on.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn make<const PACKED: bool, const SKIP: usize>(
        &self,
        indices: &mut Indices,
        eight: usize,
        chunk: Loads<'_>,
        bounds: &mut Bounds,
    ) {
        // SAFETY: this function requires AVX2, the eight signals, and that the index of the eight is
        // within a chunk, for which there is room.
        unsafe {
            let numbers = chunk.load8_add::<SKIP>(8 * eight, self.to_offset);
            let [low, high] = numbers.map(|four| _mm256_castsi256_ps(four));
            let high_halves = _mm256_castps_si256(_mm256_shuffle_ps::<0b11_01_11_01>(low, high));
            let offsets = pack(numbers);
            let found = if PACKED {
                _mm256_srli_epi32::<{ CELL.trailing_zeros() as i32 }>(offsets)
            } else {
                _mm256_srli_epi32::<6>(offsets)
            };
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
    /// The processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn all_within(&self, bounds: &Bounds) -> bool {
        // SAFETY: this function requires AVX2, and nothing else is needed.
        unsafe {
            let greatest = _mm256_max_epu32(bounds.greatest, self.last_index);
            let beyond = _mm256_xor_si256(greatest, self.last_index);
            let elsewhere = _mm256_or_si256(beyond, bounds.high);
            _mm256_testz_si256(elsewhere, elsewhere) != 0
        }
    }

    /// A bit for each of eight signals that is not in the span.
    ///
    /// # Safety
    ///
    /// - The processor has AVX2.
    /// - The chunk has the eight.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn elsewhere(&self, chunk: Loads<'_>, eight: usize) -> u32 {
        // SAFETY: this function requires AVX2 and the eight signals.
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
