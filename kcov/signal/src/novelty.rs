//! The set of all signals ever seen, optimized to detect new ones.

use crate::arch::Path;
use crate::bitmap::Bitmap;
use crate::fallback::{Fallback, Inserted};
use crate::iter::MapIter;
use crate::known::{Known, Outside};
use crate::merge::{self, Merged, Remember};
use crate::ranges::{Index, Ranges};
use crate::signals::Signals;
use core::fmt;

/// Remembers which signals have been seen.
///
/// The map is exact: it misses no new signal and calls no known signal new. Within its [`Ranges`]
/// there is always room. Outside them it remembers signals until its fallback is full, and then
/// reports that.
///
/// # Memory
///
/// One bit for each byte of text: 22 MB for the 176 MB of a kernel built for fuzzing. Allocators give
/// out such blocks without touching them, and a page that is never touched takes no memory. Each
/// signal outside the ranges takes 16 to 32 bytes, and the map allocates only when it merges such
/// signals. [`memory`](Self::memory) reports the sizes.
#[derive(Clone)]
pub struct NoveltyMap {
    ranges: Ranges,
    index: Index,
    /// Invariant: sized for the bytes of `index`.
    bitmap: Bitmap,
    fallback: Fallback,
    in_ranges: usize,
    path: Path,
}

/// The memory of a [`NoveltyMap`], in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
    /// Memory for the ranges. Never changes.
    pub ranges: usize,
    /// Memory for the signals outside the ranges. Grows.
    pub fallback: usize,
}

impl NoveltyMap {
    /// The default size of the fallback: signals outside the ranges.
    pub const FALLBACK: usize = 4096;

    /// The largest fallback, in signals.
    pub const MAX_FALLBACK: usize = 1 << 24;

    /// Makes an empty map. Allocates.
    #[must_use]
    pub fn new(ranges: Ranges) -> NoveltyMap {
        NoveltyMap::with_fallback(ranges, NoveltyMap::FALLBACK)
    }

    /// Makes an empty map with room for `capacity` signals outside the ranges, or
    /// [`MAX_FALLBACK`](Self::MAX_FALLBACK) if that is less. Allocates only for the ranges.
    #[must_use]
    pub fn with_fallback(ranges: Ranges, capacity: usize) -> NoveltyMap {
        let index = Index::new(&ranges);
        let bitmap = Bitmap::new(index.bytes());
        let fallback = Fallback::new(capacity.min(NoveltyMap::MAX_FALLBACK));
        NoveltyMap { ranges, index, bitmap, fallback, in_ranges: 0, path: Path::detect() }
    }

    /// Whether any of the signals is new. Stops soon after the first new one.
    #[inline]
    #[must_use]
    pub fn has_new(&self, signals: impl Signals) -> bool {
        merge::has_new(self.known(), signals)
    }

    /// Calls `what` with each occurrence of a new signal, in order. Remembers nothing.
    pub fn for_each_new(&self, signals: impl Signals, what: impl FnMut(u64)) {
        merge::for_each_new(self.known(), signals, what);
    }

    /// Remembers the signals.
    pub fn merge(&mut self, signals: impl Signals) -> Merged {
        self.merge_with(signals, |_| {})
    }

    /// Remembers the signals and calls `what` with each new one, in order. It gets a signal once,
    /// or on each occurrence if the map has no room for it.
    pub fn merge_with(&mut self, signals: impl Signals, what: impl FnMut(u64)) -> Merged {
        merge::merge(self, signals, what)
    }

    /// Whether a signal has been seen.
    #[inline]
    #[must_use]
    pub fn contains(&self, signal: u64) -> bool {
        self.known().contains(signal)
    }

    /// The number of signals in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.in_ranges + self.fallback.len()
    }

    /// Whether the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The signals of the map, in ascending order. Allocates to sort any signals outside the
    /// ranges.
    #[must_use]
    pub fn iter(&self) -> MapIter<'_> {
        MapIter::new(&self.index, self.bitmap.as_run(), self.fallback.iter())
    }

    /// Forgets all signals.
    pub fn clear(&mut self) {
        self.bitmap.clear();
        self.fallback.clear();
        self.in_ranges = 0;
    }

    /// The ranges, for which there is always room.
    #[must_use]
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The size of the fallback: how many signals outside the ranges the map can hold.
    #[must_use]
    pub fn fallback_capacity(&self) -> usize {
        self.fallback.capacity()
    }

    /// The number of signals outside the ranges that the map holds.
    #[must_use]
    pub fn fallback_len(&self) -> usize {
        self.fallback.len()
    }

    /// The memory that the map takes.
    #[must_use]
    pub fn memory(&self) -> MemoryUse {
        MemoryUse { ranges: self.bitmap.bytes(), fallback: self.fallback.bytes() }
    }
}

/// Shows numbers, not the signals: there may be millions.
impl fmt::Debug for NoveltyMap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoveltyMap")
            .field("ranges", &self.ranges)
            .field("len", &self.len())
            .field("fallback_len", &self.fallback_len())
            .field("fallback_capacity", &self.fallback_capacity())
            .finish_non_exhaustive()
    }
}

impl Remember for NoveltyMap {
    fn known(&self) -> Known<'_> {
        Known {
            path: self.path,
            index: &self.index,
            bits: self.bitmap.as_run(),
            outside: Outside::Table(&self.fallback),
        }
    }

    fn remember(&mut self, signal: u64) -> Inserted {
        let Some(offset) = self.index.offset(signal) else {
            return self.fallback.insert(signal);
        };
        if self.bitmap.insert(offset) {
            self.in_ranges += 1;
            Inserted::New
        } else {
            Inserted::Known
        }
    }
}

impl<'m> IntoIterator for &'m NoveltyMap {
    type Item = u64;
    type IntoIter = MapIter<'m>;

    fn into_iter(self) -> MapIter<'m> {
        self.iter()
    }
}
