//! Remembering signals, in whichever map.

use super::blocks::sealed::Source;
use super::blocks::{BLOCK, all_runs};
use super::fallback::Inserted;
use crate::run::Run;

/// What [`NoveltyMap::merge`](super::NoveltyMap::merge) has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// New signals, each counted once.
    pub new: usize,
    /// New signals that could not be remembered, each time that they came: outside of the ranges,
    /// when the fallback was full. They are not part of `new`.
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

/// A map that is told of signals.
pub(crate) trait Remember {
    fn knows_all(&self, run: Run<'_>) -> bool;

    fn remember(&mut self, signal: u64) -> Inserted;
}

/// Has a map remember signals and calls `what` with each new one, once; those that cannot be
/// remembered come each time.
pub(crate) fn merge(
    map: &mut impl Remember,
    signals: impl Source,
    mut what: impl FnMut(u64),
) -> Merged {
    let mut merged = Merged::default();
    for_each_unsure(map, signals, Remember::knows_all, |map, block| {
        for &signal in block {
            let inserted = map.remember(signal);
            merged.add(inserted);
            if inserted != Inserted::Known {
                what(signal);
            }
        }
    });
    merged
}

/// Signals that are looked at where they lie before any is copied.
const PIECE: usize = 8 * BLOCK;

/// Calls for copies of those blocks of signals that a map does not know all of.
pub(crate) fn for_each_unsure<M>(
    map: &mut M,
    signals: impl Source,
    knows_all: impl Fn(&M, Run<'_>) -> bool,
    mut what: impl FnMut(&mut M, &[u64]),
) {
    let mut space = [0; BLOCK];
    all_runs(signals, |run| {
        for piece in run.pieces(PIECE) {
            if knows_all(map, piece) {
                continue;
            }
            for block in piece.pieces(BLOCK) {
                let count = block.copy(&mut space);
                let block = &space[..count];
                if !knows_all(map, Run::from(block)) {
                    what(map, block);
                }
            }
        }
        true
    });
}
