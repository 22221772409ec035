//! Signals with AVX2, eight at a time and 128 ahead.
//!
//! The words of a map are loaded one by one: a gather costs as much where it is fast, several times
//! as much where microcode has made it slow, and is no atomic load. Their indices take the way
//! through memory, which costs less than moving them from vectors to where addresses are made. They
//! are made a chunk before they are used: making them is work for the vector units and loading words
//! for the load units, and a processor does both at once.
#![allow(
    clippy::multiple_unsafe_ops_per_block,
    reason = "each intrinsic counts as one, and all have the same duty"
)]
#![allow(unused_unsafe, reason = "before Rust 1.87 intrinsics are unsafe to call")]

mod indices;
mod words;

use super::blocks::BLOCK;
use super::known::{Known, Memory};
use crate::run::Run;
use indices::{Indices, Limits};
use words::Words;

/// Eights in a chunk.
const CHUNK: usize = BLOCK / 8;

/// Signals from which on it pays to begin where four words are aligned. The records of a live buffer
/// never are, because the count lies before them.
const LONG: usize = 4 * BLOCK;

/// Whether all signals of a run have been seen.
///
/// # Safety
///
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub(crate) unsafe fn contains_all(known: Known<'_>, run: Run<'_>) -> bool {
    let head = if run.len() < LONG { 0 } else { run.before_aligned() };
    let body = run.skip(head);
    let eights = if known.index.largest().bytes == 0 { 0 } else { body.len() / 8 };
    // SAFETY: the processor has AVX2, by the caller's duty; the run has the eights, and there are
    // none if the largest span is empty.
    let seen = unsafe {
        match known.memory {
            Memory::Bits(_) => eights_seen::<false>(known, body, eights),
            Memory::Packed(_) => eights_seen::<true>(known, body, eights),
        }
    };
    let one_by_one = |run: Run<'_>| run.iter().all(|signal| known.contains(signal));
    seen && one_by_one(body.skip(8 * eights)) && (head == 0 || one_by_one(run.first(head)))
}

/// Whether all signals of as many eights have been seen.
///
/// # Safety
///
/// The processor has AVX2, the run has the eights, the largest span is not empty if there are some,
/// and `PACKED` says what the memory is.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn eights_seen<const PACKED: bool>(known: Known<'_>, run: Run<'_>, eights: usize) -> bool {
    if eights == 0 {
        return true;
    }
    let span = known.index.largest();
    let indices = &mut Indices::new();
    let (mut first, mut count) = (0, eights.min(CHUNK));
    // SAFETY: the processor has AVX2, all eights are within the run, and an eight is looked up after
    // its indices were made, with the limits of the span that the words are of.
    unsafe {
        let limits = Limits::of::<PACKED>(span);
        let words = Words::of(known.memory, span);
        let mut bounds = limits.bounds();
        for eight in 0..count {
            limits.make::<PACKED, 0>(indices, eight, run, &mut bounds);
        }
        while count > 0 {
            let chunk = run.skip(8 * first);
            // If there are any, this chunk is a whole one.
            let ahead = (eights - first - count).min(CHUNK);
            let mut bounds_ahead = limits.bounds();
            let both = if limits.all_within(&bounds) { ahead / 2 * 2 } else { 0 };
            // Two at a time, with one branch; the indices ahead take the place of those used up.
            for eight in (0..both).step_by(2) {
                let found = words.find::<PACKED, 0>(indices, eight, chunk);
                let second = words.find::<PACKED, 8>(indices, eight, chunk);
                if !found.both(second) {
                    let missing = found.missing() | second.missing() << 8;
                    if !PACKED {
                        if !one_by_one(known, chunk, eight, missing) {
                            return false;
                        }
                    } else {
                        let crowded = words.find_crowded::<0>(indices, eight, chunk);
                        let second = words.find_crowded::<8>(indices, eight, chunk);
                        let missing = missing & (crowded.missing() | second.missing() << 8);
                        if missing != 0 && !one_by_one(known, chunk, eight, missing) {
                            return false;
                        }
                    }
                }
                limits.make::<PACKED, BLOCK>(indices, eight, chunk, &mut bounds_ahead);
                limits.make::<PACKED, { BLOCK + 8 }>(indices, eight, chunk, &mut bounds_ahead);
            }
            // What is left of the last chunk, or a chunk of which a signal is elsewhere.
            for eight in both..count {
                let found = words.find::<PACKED, 0>(indices, eight, chunk);
                let mut missing = found.missing();
                if PACKED && missing != 0 {
                    missing &= words.find_crowded::<0>(indices, eight, chunk).missing();
                }
                missing |= limits.elsewhere(chunk, eight);
                if missing != 0 && !one_by_one(known, chunk, eight, missing) {
                    return false;
                }
            }
            for eight in both..ahead {
                limits.make::<PACKED, BLOCK>(indices, eight, chunk, &mut bounds_ahead);
            }
            (bounds, first, count) = (bounds_ahead, first + count, ahead);
        }
    }
    true
}

/// Whether those of the signals were seen that have a bit: elsewhere, or not at all.
///
/// # Safety
///
/// The chunk has a signal for each bit.
#[cold]
#[inline(never)]
unsafe fn one_by_one(known: Known<'_>, chunk: Run<'_>, eight: usize, mut bits: u32) -> bool {
    while bits != 0 {
        // SAFETY: by the caller's duty.
        let signal = unsafe { chunk.load(8 * eight + bits.trailing_zeros() as usize) };
        if !known.contains(signal) {
            return false;
        }
        bits &= bits - 1;
    }
    true
}
