//! What the words of a map say of signals.

use super::indices::{Eight, Indices, pack};
use super::load::Loads;
use crate::known::Memory;
use crate::packed::{FOUR_FIELDS, HIGH, LISTS, LOW, WIDTH};
use crate::ranges::{CELL, Span};
use crate::run::Run;
use core::arch::asm;
use core::arch::x86_64::*;

/// The words of a span.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'m> {
    words: Loads<'m>,
    /// The lines of crowded cells, if the words are of cells.
    lines: Loads<'m>,
}

impl<'m> Lookup<'m> {
    #[inline]
    pub(super) fn of(memory: Memory<'m>, span: Span) -> Lookup<'m> {
        let (words, bytes, lines) = match memory {
            Memory::Bits(bits) => (bits, 64, Run::Plain(&[])),
            Memory::Packed(packed) => (packed.words(), CELL, packed.lines()),
        };
        // Spans begin where words do.
        let words = words.skip((span.offset / bytes) as usize);
        Lookup { words: words.into(), lines: lines.into() }
    }

    /// Fetches the words of an eight into the cache.
    ///
    /// # Safety
    ///
    /// - The processor has AVX2.
    /// - The indices of the eight were made.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn prefetch(self, indices: &Indices, eight: usize) {
        // SAFETY: this function requires the same.
        unsafe { indices.prefetch(eight, self.words) };
    }

    /// What the words say of eight signals of a chunk, if these are in the span.
    ///
    /// # Safety
    ///
    /// - The processor has AVX2.
    /// - The chunk has eight signals from `8 * eight + SKIP` on.
    /// - Their indices were made, with the limits of the span.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn find<const PACKED: bool, const SKIP: usize>(
        self,
        indices: &Indices,
        eight: usize,
        chunk: Loads<'_>,
    ) -> Found {
        // SAFETY: this function requires AVX2, the signals and their indices. Indices are at most the
        // last one of the span, for which there is a word by the invariant of `Known`.
        unsafe {
            let [low, high] = indices.of(eight + SKIP / 8).load(self.words);
            let places = _mm256_set1_epi64x(if PACKED { CELL as i64 } else { 64 } - 1);
            let [first, second] = chunk.load8_and::<SKIP>(8 * eight, places);
            Found(if PACKED {
                [listed(low, first), listed(high, second)]
            } else {
                [set(low, first), set(high, second)]
            })
        }
    }

    /// What the lines of crowded cells say of eight signals, as [`find`](Self::find) does.
    ///
    /// # Safety
    ///
    /// As for [`find`](Self::find), and the words are of cells.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn find_crowded<const SKIP: usize>(
        self,
        indices: &Indices,
        eight: usize,
        chunk: Loads<'_>,
    ) -> Found {
        // SAFETY: as in `find`. A word that does not list names a line, by the invariant of `Packed`,
        // whose words nobody writes meanwhile; those that list take the first line, which is always
        // there.
        unsafe {
            let [low, high] = indices.of(eight + SKIP / 8).load(self.words);
            let in_cell = _mm256_set1_epi64x(CELL as i64 - 1);
            let places = chunk.load8_and::<SKIP>(8 * eight, in_cell);
            let lines = [line_words(low, places[0]), line_words(high, places[1])];
            let [low, high] = Eight::from(pack(lines)).load(self.lines);
            let in_word = _mm256_set1_epi64x(63);
            Found([
                set(low, _mm256_and_si256(places[0], in_word)),
                set(high, _mm256_and_si256(places[1], in_word)),
            ])
        }
    }
}

/// What is known of eight signals: the low bits are set of those that were seen. Others may have been
/// seen all the same, in crowded cells.
#[derive(Clone, Copy)]
pub(super) struct Found([__m256i; 2]);

impl Found {
    /// Whether all of these and of others are known.
    ///
    /// # Safety
    ///
    /// The processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn both(self, other: Found) -> bool {
        // SAFETY: this function requires AVX2, and nothing else is needed.
        unsafe {
            let low = _mm256_and_si256(self.0[0], other.0[0]);
            let high = _mm256_and_si256(self.0[1], other.0[1]);
            _mm256_testc_si256(_mm256_and_si256(low, high), _mm256_set1_epi64x(1)) != 0
        }
    }

    /// A bit for each of the eight that is not known.
    ///
    /// # Safety
    ///
    /// The processor has AVX2.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn missing(self) -> u32 {
        // SAFETY: this function requires AVX2, and nothing else is needed.
        unsafe {
            let [low, high] = self.0.map(|four| {
                let top = _mm256_slli_epi64::<63>(four);
                _mm256_movemask_pd(_mm256_castsi256_pd(top)) as u32
            });
            !(low | high << 4) & 0xff
        }
    }
}

/// The bits of four places, in the low bits.
///
/// # Safety
///
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn set(words: __m256i, places: __m256i) -> __m256i {
    let bits: __m256i;
    // SAFETY: this function requires AVX2, which has the instruction; it does nothing else.
    // The intrinsic is made into more where a compiler does not know that places are less than 64.
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

/// The indices of the words of lines that have the bits of four places; words that list have the first
/// line.
///
/// # Safety
///
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn line_words(words: __m256i, places: __m256i) -> __m256i {
    // SAFETY: this function requires AVX2, and nothing else is needed.
    unsafe {
        let lists = _mm256_set1_epi64x(LISTS as i64);
        let lists = _mm256_cmpeq_epi64(_mm256_and_si256(words, lists), lists);
        // The number of the line is behind the lowest bit, and a line has eight words.
        let lines = _mm256_slli_epi64::<2>(_mm256_andnot_si256(lists, words));
        _mm256_add_epi64(lines, _mm256_srli_epi64::<6>(places))
    }
}

/// Low bits for those of four places that the words of their cells list, as
/// [`Packed`](crate::packed::Packed) does it; none for those of crowded cells.
///
/// # Safety
///
/// The processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn listed(words: __m256i, places: __m256i) -> __m256i {
    // SAFETY: this function requires AVX2, and nothing else is needed.
    unsafe {
        let four = _mm256_mul_epu32(places, _mm256_set1_epi64x(FOUR_FIELDS as i64));
        let all = _mm256_or_si256(four, _mm256_slli_epi64::<{ 4 * WIDTH as i32 }>(four));
        let fields = _mm256_xor_si256(words, all);
        let borrow = _mm256_sub_epi64(fields, _mm256_set1_epi64x(LOW as i64));
        let high = _mm256_set1_epi64x(HIGH as i64);
        let zeros = _mm256_and_si256(_mm256_andnot_si256(fields, borrow), high);
        let misses = _mm256_cmpeq_epi64(zeros, _mm256_setzero_si256());
        // The low bit of a word says that it lists.
        _mm256_andnot_si256(misses, words)
    }
}
