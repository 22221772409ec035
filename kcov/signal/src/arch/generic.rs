//! Lookups on any processor.

use crate::known::{Known, Memory};
use crate::run::Run;
use core::sync::atomic::Ordering;

/// Calls `unsure`, in order, with each signal that may be new. Stops and returns false as soon as
/// `unsure` does.
pub(crate) fn scan(known: Known<'_>, run: Run<'_>, unsure: impl FnMut(u64) -> bool) -> bool {
    let bit = |word: u64, offset: u32| word >> (offset % 64) & 1 != 0;
    match known.memory {
        Memory::Bits(Run::Shared(bits)) => each(known, run, unsure, |offset| {
            bit(bits[offset as usize / 64].load(Ordering::Relaxed), offset)
        }),
        Memory::Bits(Run::Plain(bits)) => {
            each(known, run, unsure, |offset| bit(bits[offset as usize / 64], offset))
        }
        Memory::Packed(packed) => each(known, run, unsure, |offset| packed.contains(offset)),
    }
}

/// Looks up the signals of the largest span by `seen`, which takes offsets. The others are unsure.
#[inline(always)]
fn each(
    known: Known<'_>,
    run: Run<'_>,
    mut unsure: impl FnMut(u64) -> bool,
    seen: impl Fn(u32) -> bool,
) -> bool {
    let largest = known.index.largest();
    run.all(|signal| {
        let within = signal.wrapping_sub(largest.start);
        within < largest.bytes && seen((largest.offset + within) as u32) || unsure(signal)
    })
}
