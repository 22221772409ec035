//! Lookups with AVX2, eight signals at a time and 128 ahead.
//!
//! # How it works
//!
//! A chunk has 128 signals, in sixteen groups of eight. [`Limits::make`] subtracts the start of the
//! largest span from eight signals, shifts the offsets to indices of the map's words, and bounds
//! them, so that each index is valid; [`Limits::all_within`] then tells once per chunk whether
//! a signal was outside. [`Lookup`] loads the eight words, shifts each by its signal's offset, and
//! ANDs the results: one branch per group.
//! Only a group with a miss is looked at again, signal by signal. [`load`] has all loads of memory
//! that others may write, in assembly, because Rust has no atomic vector loads. Everything else is
//! arithmetic on registers, and the only duty of the callers is the index below the word count.
//!
//! # Why not plain Rust
//!
//! Relaxed loads keep the compiler from vectorising a loop. A generic loop without an early exit
//! within eight signals, compiled for AVX2, took 1.58 to 1.65 times as long as this on recorded
//! traces (Intel Xeon, one run of one program). Groups of 16 and 32, and unchecked loads at
//! vectorised indices, took longer.
//!
//! # Loads
//!
//! The words of a map are loaded one by one. A gather is no atomic load; it costs the same on fast
//! processors, and several times as much where microcode has slowed it down. Word indices go
//! through memory, which costs less than moving them from vector to address registers. They are
//! made one chunk ahead: making them occupies the vector units and loading words the load units, so
//! the processor does both at once.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each intrinsic counts as one, and all require the same: AVX2"
)]
#![allow(unused_unsafe, reason = "before Rust 1.87 intrinsics are unsafe to call")]

mod indices;
mod load;
mod lookup;

use crate::known::Known;
use crate::run::Run;
use crate::signals::BLOCK;
use indices::{Indices, Limits};
use load::Loads;
use lookup::Lookup;

/// Groups of eight in a chunk.
const CHUNK: usize = BLOCK / 8;

/// Minimum number of signals that justifies starting at an aligned group of four words. The records
/// of a live buffer are never so aligned, because the count precedes them.
const LONG: usize = 4 * BLOCK;

/// Bytes of text whose bits the nearer caches hold, 3 MiB.
const NEAR: u64 = 24 << 20;

/// Proves that the processor has AVX2: only [`detect`](Self::detect) makes one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Avx2(());

impl Avx2 {
    #[inline]
    pub(crate) fn detect() -> Option<Avx2> {
        cfg_if::cfg_if! {
            if #[cfg(feature = "std")] {
                let found = std::arch::is_x86_feature_detected!("avx2");
            } else {
                let found = cfg!(target_feature = "avx2");
            }
        }
        found.then_some(Avx2(()))
    }

    /// See [`Path::scan`](crate::arch::Path::scan).
    #[inline]
    pub(crate) fn scan<const MANY: bool>(
        self,
        known: Known<'_>,
        run: Run<'_>,
        mut unsure: impl FnMut(u64) -> bool,
    ) -> bool {
        let head = if run.len() < LONG { 0 } else { Loads::from(run).before_aligned() };
        let body = run.skip(head);
        let eights = if known.index.largest().bytes == 0 { 0 } else { body.len() / 8 };
        run.first(head).all(&mut unsure)
            && (eights == 0
                // SAFETY: `self` proves AVX2. The body has `eights` eights, not 0, so the largest
                // span is not empty.
                || unsafe { scan::<MANY>(known, body, eights, &mut unsure) })
            && body.skip(8 * eights).all(&mut unsure)
    }
}

/// Scans groups of eight.
///
/// # Safety
///
/// The caller must ensure that:
///
/// - the processor has AVX2;
/// - the run has at least `eights` eights, and `eights` is not 0;
/// - the largest span is not empty.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn scan<const MANY: bool>(
    known: Known<'_>,
    run: Run<'_>,
    eights: usize,
    unsure: &mut impl FnMut(u64) -> bool,
) -> bool {
    let span = known.index.largest();
    let indices = &mut Indices::new();
    let (mut left, mut count) = (eights, eights.min(CHUNK));
    let mut chunk = Loads::from(run);
    // SAFETY: the caller ensures AVX2, `eights` eights in the run and a nonempty span. `eight <
    // count <= left`, and the chunk has `left` eights, so each eight is in the run. Those ahead are
    // too, because `ahead` is at most the number of eights after the chunk. Each eight is looked up
    // after its indices were made, in the words of the span whose limits they were made with.
    unsafe {
        let limits = Limits::of(span);
        let lookup = Lookup::of(known.bits, span);
        let mut bounds = limits.bounds();
        for eight in 0..count {
            limits.make::<0>(indices, eight, chunk, &mut bounds);
        }
        while count > 0 {
            // If `ahead` is not 0, this is a whole chunk.
            let ahead = (left - count).min(CHUNK);
            let mut bounds_ahead = limits.bounds();
            let both = if limits.all_within(&bounds) { ahead / 2 * 2 } else { 0 };
            let mut unsure_bits = [0u64; BLOCK / 64];
            // Two eights per iteration, with at most one branch. The new indices replace the used
            // ones.
            for eight in (0..both).step_by(2) {
                let found = lookup.find::<0>(indices, eight, chunk);
                let second = lookup.find::<8>(indices, eight, chunk);
                if MANY {
                    let missing = found.missing() | second.missing() << 8;
                    unsure_bits[eight / 8] |= u64::from(missing) << (8 * (eight % 8));
                } else if !found.both(second) {
                    let missing = found.missing() | second.missing() << 8;
                    if !few(chunk, 8 * eight, missing, unsure) {
                        return false;
                    }
                }
                limits.make::<BLOCK>(indices, eight, chunk, &mut bounds_ahead);
                limits.make::<{ BLOCK + 8 }>(indices, eight, chunk, &mut bounds_ahead);
                if MANY && span.bytes > NEAR {
                    lookup.prefetch(indices, eight);
                    lookup.prefetch(indices, eight + 1);
                }
            }
            if MANY {
                for (index, &bits) in unsure_bits.iter().enumerate() {
                    if !each(chunk, 64 * index, bits, unsure) {
                        return false;
                    }
                }
            }
            // The rest of the last chunk, or a chunk with a signal outside the span.
            for eight in both..count {
                let found = lookup.find::<0>(indices, eight, chunk);
                let missing = found.missing() | limits.elsewhere(chunk, eight);
                if missing != 0 && !few(chunk, 8 * eight, missing, unsure) {
                    return false;
                }
            }
            for eight in both..ahead {
                limits.make::<BLOCK>(indices, eight, chunk, &mut bounds_ahead);
            }
            chunk = chunk.skip(8 * count);
            (bounds, left, count) = (bounds_ahead, left - count, ahead);
        }
    }
    true
}

/// Same as [`each`], but outlined from the loop.
#[cold]
#[inline(never)]
fn few(signals: Loads<'_>, start: usize, bits: u32, unsure: &mut impl FnMut(u64) -> bool) -> bool {
    each(signals, start, bits.into(), unsure)
}

/// Calls `unsure` for each set bit, with the signal at `start` plus the bit's number. Stops and
/// returns false once `unsure` returns false.
#[inline(always)]
fn each(
    signals: Loads<'_>,
    start: usize,
    mut bits: u64,
    unsure: &mut impl FnMut(u64) -> bool,
) -> bool {
    while bits != 0 {
        if !unsure(signals.load(start + bits.trailing_zeros() as usize)) {
            return false;
        }
        bits &= bits - 1;
    }
    true
}
