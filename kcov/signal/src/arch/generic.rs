//! Lookups on any processor.

use crate::known::Known;
use crate::ranges::Span;
use crate::run::Run;
use core::sync::atomic::{AtomicU64, Ordering};

/// Calls `unsure`, in order, with each signal that may be new. Stops and returns false once
/// `unsure` returns false.
pub(crate) fn scan(known: Known<'_>, run: Run<'_>, unsure: impl FnMut(u64) -> bool) -> bool {
    let bit = |word: u64, offset: u32| word >> (offset % 64) & 1 != 0;
    match known.bits {
        Run::Shared(bits) => each(known, run, unsure, |offset| {
            bit(bits[offset as usize / 64].load(Ordering::Relaxed), offset)
        }),
        Run::Plain(bits) => {
            each(known, run, unsure, |offset| bit(bits[offset as usize / 64], offset))
        }
    }
}

/// Looks up eight signals at a time with `seen`, which takes an offset. Passes the rest to
/// `unsure`.
#[inline(always)]
fn each(
    known: Known<'_>,
    run: Run<'_>,
    mut unsure: impl FnMut(u64) -> bool,
    seen: impl Fn(u32) -> bool,
) -> bool {
    let largest = known.index.largest();
    let relaxed = |word: &AtomicU64| word.load(Ordering::Relaxed);
    let eights = match run {
        Run::Shared(words) => eights(words, relaxed, largest, &mut unsure, &seen),
        Run::Plain(words) => eights(words, |word| *word, largest, &mut unsure, &seen),
    };
    eights && run.skip(run.len() / 8 * 8).all(unsure)
}

/// Looks up whole groups of eight. The inner loop is unrolled, because it costs as much as a
/// lookup.
#[inline(always)]
fn eights<W>(
    words: &[W],
    load: impl Fn(&W) -> u64,
    largest: Span,
    unsure: &mut impl FnMut(u64) -> bool,
    seen: &impl Fn(u32) -> bool,
) -> bool {
    words.chunks_exact(8).all(|eight| {
        eight.iter().all(|word| {
            let signal = load(word);
            let within = signal.wrapping_sub(largest.start);
            within < largest.bytes && seen((largest.offset + within) as u32) || unsure(signal)
        })
    })
}
