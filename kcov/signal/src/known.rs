//! What a map knows, for any kind of map.

use crate::arch::Path;
use crate::fallback::Fallback;
use crate::ranges::Index;
use crate::run::Run;
use crate::shared::Parts;
use core::sync::atomic::AtomicU64;

/// A map's data for lookups.
#[derive(Clone, Copy)]
pub(crate) struct Known<'m> {
    pub(crate) path: Path,
    pub(crate) index: &'m Index,
    /// Signals seen within the ranges: one bit per byte of text. Invariant: has one word per 64 bytes
    /// of `index`.
    pub(crate) bits: Run<'m>,
    pub(crate) outside: Outside<'m>,
}

/// Signals seen outside the ranges.
#[derive(Clone, Copy)]
pub(crate) enum Outside<'m> {
    Table(&'m Fallback),
    Shared(Parts<'m, AtomicU64>),
}

impl Known<'_> {
    /// Whether a signal has been seen.
    #[inline]
    pub(crate) fn contains(self, signal: u64) -> bool {
        match (self.index.offset(signal), self.outside) {
            (Some(offset), _) => self.bits.load(offset as usize / 64) >> (offset % 64) & 1 != 0,
            (None, Outside::Table(table)) => table.contains(signal),
            (None, Outside::Shared(parts)) => parts.contains_outside(signal),
        }
    }

    /// Whether all signals of a run have been seen.
    pub(crate) fn contains_all(self, run: Run<'_>) -> bool {
        #[cold]
        #[inline(never)]
        fn contains(known: Known<'_>, signal: u64) -> bool {
            known.contains(signal)
        }
        self.path.scan::<false>(self, run, |signal| contains(self, signal))
    }
}

/// Scratch space for the signals of a piece that may be new.
pub(crate) struct Unsure([u64; Unsure::PIECE]);

impl Unsure {
    /// Maximum number of signals in a piece.
    pub(crate) const PIECE: usize = 1024;

    pub(crate) fn new() -> Unsure {
        Unsure([0; Unsure::PIECE])
    }

    /// The signals of a piece that may be new, in order: all new ones, and few known ones.
    pub(crate) fn of(&mut self, known: Known<'_>, piece: Run<'_>) -> &[u64] {
        let piece = piece.first(Unsure::PIECE);
        if known.contains_all(piece) {
            return &[];
        }
        let mut count = 0;
        known.path.scan::<true>(known, piece, |signal| {
            self.0[count] = signal;
            count += 1;
            true
        });
        &self.0[..count]
    }
}
