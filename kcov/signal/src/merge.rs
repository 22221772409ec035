//! Naming and remembering new signals, in whichever map.
//!
//! Vectors find the signals of a piece that may be new; then these few are handled one by one. So a
//! map is not written while vectors read it, and each signal that is new is looked up once more only.

use crate::fallback::Inserted;
use crate::known::{Known, Unsure};
use crate::signals::{Signals, runs};
use core::ops::ControlFlow;

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// Signals that were new and are remembered now. Each counts once.
    pub new: usize,
    /// Signals that were new and could not be remembered, because they are outside the ranges and the
    /// fallback is full. Each counts as often as it came. They are not part of `new`.
    pub unrecorded: usize,
}

impl Merged {
    pub(crate) fn add(&mut self, inserted: Inserted) {
        match inserted {
            Inserted::Known => {}
            Inserted::New => self.new += 1,
            Inserted::Full => self.unrecorded += 1,
        }
    }
}

/// A map that can be told of signals.
pub(crate) trait Remember {
    fn known(&self) -> Known<'_>;

    fn remember(&mut self, signal: u64) -> Inserted;
}

/// Signals that are asked about at once. Most have nothing new among them, which is faster to find out
/// than what is new.
const ASKED: usize = 8 * Unsure::PIECE;

/// Makes a map remember signals. Calls `what` with each signal that is new.
pub(crate) fn merge(
    map: &mut impl Remember,
    signals: impl Signals,
    mut what: impl FnMut(u64),
) -> Merged {
    let mut merged = Merged::default();
    let mut unsure = Unsure::new();
    let _ = runs(signals, |run| {
        for asked in run.pieces(ASKED) {
            if map.known().contains_all(asked) {
                continue;
            }
            for piece in asked.pieces(Unsure::PIECE) {
                for &signal in unsure.of(map.known(), piece) {
                    let inserted = map.remember(signal);
                    merged.add(inserted);
                    if inserted != Inserted::Known {
                        what(signal);
                    }
                }
            }
        }
        ControlFlow::Continue(())
    });
    merged
}

/// Calls `what` with each signal that has not been seen.
pub(crate) fn for_each_new(known: Known<'_>, signals: impl Signals, mut what: impl FnMut(u64)) {
    let mut unsure = Unsure::new();
    let _ = runs(signals, |run| {
        for asked in run.pieces(ASKED).filter(|asked| !known.contains_all(*asked)) {
            for piece in asked.pieces(Unsure::PIECE) {
                let unsure = unsure.of(known, piece).iter().copied();
                unsure.filter(|signal| !known.contains(*signal)).for_each(&mut what);
            }
        }
        ControlFlow::Continue(())
    });
}

/// Whether any signal has not been seen.
#[inline]
pub(crate) fn has_new(known: Known<'_>, signals: impl Signals) -> bool {
    let all = runs(signals, |run| match known.contains_all(run) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    all.is_break()
}
