//! Looks up signals in a map's words.

use super::indices::{Eight, Indices, pack};
use super::load::Loads;
use crate::known::Memory;
use crate::packed::{FOUR_FIELDS, HIGH, LISTS, LOW, WIDTH};
use crate::ranges::{CELL, Span};
use crate::run::Run;
use core::arch::asm;
use core::arch::x86_64::*;

/// The words of a map for a span.
#[derive(Clone, Copy)]
pub(super) struct Lookup<'m> {
    words: Loads<'m>,
    /// The lines of crowded cells, for packed maps.
    lines: Loads<'m>,
}

impl<'m> Lookup<'m> {
    #[inline]
    pub(super) fn of(memory: Memory<'m>, span: Span) -> Lookup<'m> {
        let (words, bytes, lines) = match memory {
            Memory::Bits(bits) => (bits, 64, Run::Plain(&[])),
            Memory::Packed(packed) => (packed.words(), CELL, packed.lines()),
        };
        // Spans begin at word boundaries.
        let words = words.skip((span.offset / bytes) as usize);
        Lookup { words: words.into(), lines: lines.into() }
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
        unsafe { indices.prefetch(eight, self.words) };
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
    pub(super) unsafe fn find<const PACKED: bool, const SKIP: usize>(
        self,
        indices: &Indices,
        eight: usize,
        chunk: Loads<'_>,
    ) -> Found {
        // SAFETY: the caller ensures AVX2, the signals and their indices. No index exceeds the last
        // one of the span, which has a word by the invariant of `Known`.
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

    /// Looks up eight signals in the lines of crowded cells, as [`find`](Self::find) does.
    ///
    /// # Safety
    ///
    /// Same as [`find`](Self::find), and the caller must ensure that the map is packed.
    #[inline]
    #[target_feature(enable = "avx2")]
    pub(super) unsafe fn find_crowded<const SKIP: usize>(
        self,
        indices: &Indices,
        eight: usize,
        chunk: Loads<'_>,
    ) -> Found {
        // SAFETY: as in `find`. By the invariant of `Packed`, a word that does not list is the
        // number of a line, and nobody writes the words meanwhile. Words that list use the first
        // line, which always exists.
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

/// Result of a lookup of eight signals: the low bit is set for those seen. Signals in crowded cells
/// may have been seen even if it is clear.
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

/// The indices of the line words that hold the bits of four places. Words that list get the first
/// line.
///
/// # Safety
///
/// The caller must ensure that the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn line_words(words: __m256i, places: __m256i) -> __m256i {
    // SAFETY: the caller ensures AVX2, the only requirement.
    unsafe {
        let lists = _mm256_set1_epi64x(LISTS as i64);
        let lists = _mm256_cmpeq_epi64(_mm256_and_si256(words, lists), lists);
        // The number of the line is above the lowest bit, and a line has eight words.
        let lines = _mm256_slli_epi64::<2>(_mm256_andnot_si256(lists, words));
        _mm256_add_epi64(lines, _mm256_srli_epi64::<6>(places))
    }
}

/// Low bits for four places, set if the cell's word lists the place as
/// [`Packed`](crate::packed::Packed) does. Clear for crowded cells.
///
/// # Safety
///
/// The caller must ensure that the processor has AVX2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn listed(words: __m256i, places: __m256i) -> __m256i {
    // SAFETY: the caller ensures AVX2, the only requirement.
    unsafe {
        let four = _mm256_mul_epu32(places, _mm256_set1_epi64x(FOUR_FIELDS as i64));
        let all = _mm256_or_si256(four, _mm256_slli_epi64::<{ 4 * WIDTH as i32 }>(four));
        let fields = _mm256_xor_si256(words, all);
        let borrow = _mm256_sub_epi64(fields, _mm256_set1_epi64x(LOW as i64));
        let high = _mm256_set1_epi64x(HIGH as i64);
        let zeros = _mm256_and_si256(_mm256_andnot_si256(fields, borrow), high);
        let misses = _mm256_cmpeq_epi64(zeros, _mm256_setzero_si256());
        // The low bit of a word says whether it lists.
        _mm256_andnot_si256(misses, words)
    }
}
