//! Eight signals at a time, with AVX2.
//!
//! Four words of a map are loaded one by one: a gather costs as much where it is fast, several times
//! as much where microcode has made it slow, and is no atomic load.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each intrinsic counts as one, and all have the same duty"
)]
#![allow(unused_unsafe, reason = "before Rust 1.87 intrinsics are unsafe to call")]

use super::known::{Known, Memory};
use super::packed::{FOUR_FIELDS, HIGH, LISTS, LOW, WIDTH};
use super::ranges::{CELL, Span};
use crate::run::Run;
use core::arch::x86_64::*;

/// Whether all signals of a run have been seen.
///
/// # Safety
///
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn contains_all(known: Known<'_>, run: Run<'_>) -> bool {
    let span = known.index.largest();
    let eights = if span.bytes == 0 { 0 } else { run.len() / 8 };
    for eight in 0..eights {
        // SAFETY: the processor has AVX2, by the caller's duty, and the eight words are within the
        // run.
        let signals = unsafe { [run.load4(8 * eight), run.load4(8 * eight + 4)] };
        // SAFETY: the processor has AVX2, by the caller's duty.
        if unsafe { sure(known.memory, span, signals) } {
            continue;
        }
        // SAFETY: eight words, of whatever bits.
        let signals: [u64; 8] = unsafe { core::mem::transmute(signals) };
        if !one_by_one(known, &signals) {
            return false;
        }
    }
    run.skip(8 * eights).iter().all(|signal| known.contains(signal))
}

#[cold]
#[inline(never)]
fn one_by_one(known: Known<'_>, signals: &[u64; 8]) -> bool {
    signals.iter().all(|&signal| known.contains(signal))
}

/// Whether all eight signals are in the span and the words of the map say that they were seen. If
/// not, they may have been seen all the same: elsewhere, or in a crowded cell.
///
/// # Safety
///
/// The processor has AVX2; the span is of the index that the memory was made for.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn sure(memory: Memory<'_>, span: Span, signals: [__m256i; 2]) -> bool {
    // SAFETY: by the caller's duty.
    unsafe {
        let sign = _mm256_set1_epi64x(i64::MIN);
        // Vectors compare as if there were a sign.
        let last = _mm256_set1_epi64x((span.bytes.wrapping_sub(1) as i64) ^ i64::MIN);
        let start = _mm256_set1_epi64x(span.start as i64);
        let within = [_mm256_sub_epi64(signals[0], start), _mm256_sub_epi64(signals[1], start)];
        let elsewhere = _mm256_or_si256(
            _mm256_cmpgt_epi64(_mm256_xor_si256(within[0], sign), last),
            _mm256_cmpgt_epi64(_mm256_xor_si256(within[1], sign), last),
        );
        if _mm256_testz_si256(elsewhere, elsewhere) == 0 {
            return false;
        }
        let found = match memory {
            Memory::Bits(bits) => {
                let bits = bits.skip(span.offset as usize / 64);
                _mm256_and_si256(set(bits, within[0]), set(bits, within[1]))
            }
            Memory::Packed(packed) => {
                let cells = packed.as_run().skip((span.offset / CELL) as usize);
                _mm256_and_si256(listed(cells, within[0]), listed(cells, within[1]))
            }
        };
        // Not the mask of the high bits, which compilers take apart and put together again.
        _mm256_testc_pd(_mm256_castsi256_pd(found), _mm256_castsi256_pd(sign)) != 0
    }
}

/// The bits at four offsets, in the high bits.
///
/// # Safety
///
/// The processor has AVX2, and there is a word for each 64 bytes up to the offsets.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn set(bits: Run<'_>, offsets: __m256i) -> __m256i {
    // SAFETY: by the caller's duty.
    unsafe {
        let words = load(bits, _mm256_srli_epi64::<6>(offsets));
        // The shift to the left that brings the bit to the top.
        let shift = _mm256_andnot_si256(offsets, _mm256_set1_epi64x(63));
        _mm256_sllv_epi64(words, shift)
    }
}

/// High bits for those of four offsets that the words of their cells list, as
/// [`Packed`](super::packed::Packed) does it; none for those of crowded cells.
///
/// # Safety
///
/// The processor has AVX2, and there is a word for each cell up to those of the offsets.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn listed(cells: Run<'_>, offsets: __m256i) -> __m256i {
    // SAFETY: by the caller's duty.
    unsafe {
        let words = load(cells, _mm256_srli_epi64::<{ WIDTH as i32 }>(offsets));
        let within = _mm256_and_si256(offsets, _mm256_set1_epi64x(CELL as i64 - 1));
        let four = _mm256_mul_epu32(within, _mm256_set1_epi64x(FOUR_FIELDS as i64));
        let all = _mm256_or_si256(four, _mm256_slli_epi64::<{ 4 * WIDTH as i32 }>(four));
        let all = _mm256_or_si256(all, _mm256_set1_epi64x(LISTS as i64));
        let fields = _mm256_xor_si256(words, all);
        let borrow = _mm256_sub_epi64(fields, _mm256_set1_epi64x(LOW as i64));
        let high = _mm256_set1_epi64x(HIGH as i64);
        let zeros = _mm256_and_si256(_mm256_andnot_si256(fields, borrow), high);
        let misses = _mm256_cmpeq_epi64(zeros, _mm256_setzero_si256());
        // The high bit of `fields` is set where the word does not list.
        _mm256_andnot_si256(_mm256_or_si256(misses, fields), _mm256_set1_epi64x(i64::MIN))
    }
}

/// Four words.
///
/// # Safety
///
/// The processor has AVX2, and the indices are less than the length of the run.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn load(words: Run<'_>, indices: __m256i) -> __m256i {
    // SAFETY: by the caller's duty.
    unsafe {
        let low = _mm256_castsi256_si128(indices);
        let high = _mm256_extracti128_si256::<1>(indices);
        let first = words.load_low(_mm_cvtsi128_si64(low) as usize);
        let second = words.load_low(_mm_extract_epi64::<1>(low) as usize);
        let third = words.load_low(_mm_cvtsi128_si64(high) as usize);
        let fourth = words.load_low(_mm_extract_epi64::<1>(high) as usize);
        let low = _mm_unpacklo_epi64(first, second);
        let high = _mm_unpacklo_epi64(third, fourth);
        _mm256_set_m128i(high, low)
    }
}
