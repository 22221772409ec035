//! What a map knows, of whatever kind the map is: what signals are looked for in.

use super::fallback::Fallback;
use super::packed::Packed;
use super::path::Path;
use super::ranges::Index;
use super::shared::Words;
use crate::run::Run;
use core::sync::atomic::AtomicU64;

/// What signals are looked for in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known<'m> {
    pub(crate) index: &'m Index,
    /// Invariant: has a word for each 64 bytes of `index`, or for each cell.
    pub(crate) memory: Memory<'m>,
    pub(crate) outside: Outside<'m>,
}

/// What was seen within the ranges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Memory<'m> {
    /// A bit for each byte of text.
    Bits(Run<'m>),
    Packed(&'m Packed),
}

/// What was seen outside of them.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outside<'m> {
    Table(&'m Fallback),
    Shared(Words<'m, AtomicU64>),
}

impl Known<'_> {
    /// Whether a signal has been seen.
    #[inline]
    pub(crate) fn contains(self, signal: u64) -> bool {
        match (self.index.offset(signal), self.memory, self.outside) {
            (Some(offset), Memory::Bits(bits), _) => {
                // SAFETY: there is a word for each 64 bytes of the index, and the offset is less.
                unsafe { bits.bit(offset) }
            }
            (Some(offset), Memory::Packed(packed), _) => packed.contains(offset),
            (None, _, Outside::Table(table)) => table.contains(signal),
            (None, _, Outside::Shared(words)) => words.contains_outside(signal),
        }
    }

    /// Whether all signals of a run have been seen.
    #[inline]
    pub(crate) fn contains_all(self, path: Path, run: Run<'_>) -> bool {
        match path {
            Path::Scalar => run.iter().all(|signal| self.contains(signal)),
            Path::Eights => super::eights::contains_all(self, run),
            // SAFETY: the path was chosen because the processor has it.
            #[cfg(all(target_arch = "x86_64", not(miri)))]
            Path::Avx2 => unsafe { super::avx2::contains_all(self, run) },
        }
    }
}
