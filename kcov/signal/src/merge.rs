//! Finding and remembering new signals, for any kind of map.
//!
//! Vector code finds the signals of a piece that may be new; scalar code then handles these few. So
//! nothing writes a map while vector code reads it, and each new signal is looked up only once
//! more.

use crate::fallback::Inserted;
use crate::known::{Known, Unsure};
use crate::signals::{Signals, runs};
use core::ops::ControlFlow;

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// Number of signals that were new and are now remembered. Each counts once.
    pub new: usize,
    /// Number of new signals that could not be remembered: they are outside the ranges and the
    /// fallback is full. Counts every occurrence. They are not part of `new`.
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

/// A map that can remember signals.
pub(crate) trait Remember {
    fn known(&self) -> Known<'_>;

    fn remember(&mut self, signal: u64) -> Inserted;
}

/// Signals per query. Most queries find nothing new, which is faster to detect than the new signals
/// themselves.
const ASKED: usize = 8 * Unsure::PIECE;

/// Remembers signals in a map. Calls `what` with each new signal.
pub(crate) fn merge(
    map: &mut impl Remember,
    signals: impl Signals,
    mut what: impl FnMut(u64),
) -> Merged {
    let mut merged = Merged::default();
    let mut unsure = None;
    let _ = runs(signals, |run| {
        for asked in run.pieces(ASKED) {
            if map.known().contains_all(asked) {
                continue;
            }
            for piece in asked.pieces(Unsure::PIECE) {
                let unsure = unsure.get_or_insert_with(Unsure::new);
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

/// Calls `what` with each signal not seen before.
pub(crate) fn for_each_new(known: Known<'_>, signals: impl Signals, mut what: impl FnMut(u64)) {
    let mut unsure = None;
    let _ = runs(signals, |run| {
        for asked in run.pieces(ASKED).filter(|asked| !known.contains_all(*asked)) {
            for piece in asked.pieces(Unsure::PIECE) {
                let unsure = unsure.get_or_insert_with(Unsure::new);
                let unsure = unsure.of(known, piece).iter().copied();
                unsure.filter(|signal| !known.contains(*signal)).for_each(&mut what);
            }
        }
        ControlFlow::Continue(())
    });
}

/// Whether any signal was not seen before.
#[inline]
pub(crate) fn has_new(known: Known<'_>, signals: impl Signals) -> bool {
    let all = runs(signals, |run| match known.contains_all(run) {
        true => ControlFlow::Continue(()),
        false => ControlFlow::Break(()),
    });
    all.is_break()
}
