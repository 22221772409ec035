//! Eight signals at a time, on any processor.

use super::known::{Known, Memory};
use crate::run::Run;

/// Whether all signals of a run have been seen.
pub(crate) fn contains_all(known: Known<'_>, run: Run<'_>) -> bool {
    match known.memory {
        // SAFETY: the offset is less than the bytes of the index, by the duty of the closure, and
        // there is a word for each 64.
        Memory::Bits(bits) => each(known, run, |offset| unsafe { bits.bit(offset) }),
        // SAFETY: as above.
        Memory::Packed(packed) => each(known, run, |offset| unsafe { packed.contains_at(offset) }),
    }
}

/// Whether `seen` says so of the offsets of all signals in the largest span, and the map of the
/// others. The offsets are less than the bytes of the index.
#[inline(always)]
fn each(known: Known<'_>, run: Run<'_>, seen: impl Fn(u32) -> bool) -> bool {
    let largest = known.index.largest();
    let seen = |signal: u64| {
        let within = signal.wrapping_sub(largest.start);
        if within < largest.bytes {
            seen((largest.offset + within) as u32)
        } else {
            elsewhere(known, signal)
        }
    };
    let eights = run.len() / 8;
    for eight in 0..eights {
        // SAFETY: the eight words are within the run.
        let at = |index| seen(unsafe { run.load(8 * eight + index) });
        // Unrolled, with branches that are foretold: the loop itself would cost as much as what it
        // does.
        if !(at(0) && at(1) && at(2) && at(3) && at(4) && at(5) && at(6) && at(7)) {
            return false;
        }
    }
    run.skip(8 * eights).iter().all(seen)
}

/// Whether a signal that is not in the largest span has been seen.
#[cold]
#[inline(never)]
fn elsewhere(known: Known<'_>, signal: u64) -> bool {
    known.contains(signal)
}
