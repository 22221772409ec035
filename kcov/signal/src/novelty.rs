//! The set of signals that were ever seen, made for one question: is there a new one here?

use super::blocks::all_runs;
use super::blocks::sealed::Source;
use super::fallback::{Fallback, Inserted};
use super::flat::Bits;
use super::iter::{Cells, Iter};
use super::known::{Known, Outside};
use super::merge::{Merged, Remember, for_each_unsure, merge};
use super::path::Path;
use super::ranges::{Index, Ranges};
use super::store::{Store, cells};
use crate::run::Run;

/// Which signals have been seen.
///
/// Exact for whatever signals it is given: nothing new is missed and nothing known is called new.
/// Within its [`Ranges`] there is always room. Outside of them it remembers as many as the fallback
/// has room for, and says when that is full.
///
/// # Memory
///
/// Up to 24 MiB of ranges take a bit for each byte of text. Larger ones take one 64-bit word for each
/// 512 bytes, 2.6 MiB for the 176 MB of a kernel built for fuzzing, and 64 bytes more for each 512
/// bytes of text in which more than seven different signals were seen; only merging these
/// allocates. [`bytes`](Self::bytes) tells.
#[derive(Clone, Debug)]
pub struct NoveltyMap {
    ranges: Ranges,
    index: Index,
    /// Invariant: made for the bytes of `index`.
    store: Store,
    fallback: Fallback,
    in_ranges: usize,
    path: Path,
}

impl NoveltyMap {
    /// Signals outside of the ranges that [`new`](Self::new) makes room for.
    pub const FALLBACK: usize = 4096;

    /// The most room that there can be outside of the ranges.
    pub const MAX_FALLBACK: usize = 1 << 24;

    /// An empty map. Allocates.
    #[must_use]
    pub fn new(ranges: Ranges) -> NoveltyMap {
        NoveltyMap::with_fallback(ranges, NoveltyMap::FALLBACK)
    }

    /// An empty map with room for `capacity` signals outside of the ranges, at most
    /// [`MAX_FALLBACK`](Self::MAX_FALLBACK). Allocates.
    #[must_use]
    pub fn with_fallback(ranges: Ranges, capacity: usize) -> NoveltyMap {
        let index = Index::new(&ranges);
        let store = Store::new(index.bytes());
        let fallback = Fallback::new(capacity.min(NoveltyMap::MAX_FALLBACK));
        NoveltyMap { ranges, index, store, fallback, in_ranges: 0, path: Path::detect() }
    }

    pub(crate) fn known(&self) -> Known<'_> {
        Known {
            index: &self.index,
            memory: self.store.memory(),
            outside: Outside::Table(&self.fallback),
        }
    }

    /// Whether any of the signals has not been seen. Stops soon after the first one.
    #[inline]
    #[must_use]
    pub fn has_new(&self, signals: impl Source) -> bool {
        let known = self.known();
        !all_runs(signals, |run| known.contains_all(self.path, run))
    }

    /// Calls `what` with each signal that has not been seen, as often as it comes, and remembers
    /// nothing.
    pub fn for_each_new(&self, signals: impl Source, mut what: impl FnMut(u64)) {
        let knows_all = |known: &Known<'_>, run: Run<'_>| known.contains_all(self.path, run);
        for_each_unsure(&mut self.known(), signals, knows_all, |known, block| {
            block.iter().filter(|signal| !known.contains(**signal)).for_each(|new| what(*new));
        });
    }

    /// Remembers the signals.
    pub fn merge(&mut self, signals: impl Source) -> Merged {
        self.merge_with(signals, |_| {})
    }

    /// Remembers the signals and calls `what` with each new one, once; those that cannot be
    /// remembered come each time.
    pub fn merge_with(&mut self, signals: impl Source, what: impl FnMut(u64)) -> Merged {
        merge(self, signals, what)
    }

    /// Remembers what another map has seen.
    pub fn merge_map(&mut self, other: &NoveltyMap) -> Merged {
        let mut merged = Merged::default();
        if self.index != other.index {
            other.iter().for_each(|signal| merged.add(self.remember(signal)));
            return merged;
        }
        for cell in 0..cells(self.index.bytes()) {
            let bits = other.store.cell(cell);
            if bits != Bits::default() {
                merged.new += self.store.merge_cell(cell, &bits);
            }
        }
        self.in_ranges += merged.new;
        other.fallback.iter().for_each(|signal| merged.add(self.fallback.insert(signal)));
        merged
    }

    /// Whether a signal has been seen.
    #[inline]
    #[must_use]
    pub fn contains(&self, signal: impl Into<u64>) -> bool {
        self.known().contains(signal.into())
    }

    /// Number of signals that are remembered.
    #[must_use]
    pub fn len(&self) -> usize {
        self.in_ranges + self.fallback.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The signals that are remembered, in ascending order. Allocates where some are outside of the
    /// ranges, to sort them.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.index, Cells::Map(&self.store), self.fallback.iter())
    }

    /// The signals of this map that another one has not seen, in ascending order. Allocates as
    /// [`iter`](Self::iter) does.
    pub fn difference<'m>(&'m self, other: &'m NoveltyMap) -> impl Iterator<Item = u64> + 'm {
        self.iter().filter(|signal| !other.known().contains(*signal))
    }

    /// Forgets all signals.
    pub fn clear(&mut self) {
        self.store.clear();
        self.fallback.clear();
        self.in_ranges = 0;
    }

    /// The ranges within which there is always room.
    #[must_use]
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// Room for signals outside of the ranges, and how many there are.
    #[must_use]
    pub fn fallback(&self) -> (usize, usize) {
        (self.fallback.capacity(), self.fallback.len())
    }

    /// Bytes of memory: for the ranges, whatever was seen; and what the crowded places of large
    /// ranges and the fallback take besides.
    #[must_use]
    pub fn bytes(&self) -> (usize, usize) {
        let (fixed, crowded) = self.store.bytes();
        (fixed, crowded + self.fallback.bytes())
    }
}

impl Remember for NoveltyMap {
    fn knows_all(&self, run: Run<'_>) -> bool {
        self.known().contains_all(self.path, run)
    }

    fn remember(&mut self, signal: u64) -> Inserted {
        let Some(offset) = self.index.offset(signal) else {
            return self.fallback.insert(signal);
        };
        if self.store.insert(offset) {
            self.in_ranges += 1;
            Inserted::New
        } else {
            Inserted::Known
        }
    }
}

impl<'m> IntoIterator for &'m NoveltyMap {
    type Item = u64;
    type IntoIter = Iter<'m>;

    fn into_iter(self) -> Iter<'m> {
        self.iter()
    }
}
