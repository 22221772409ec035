//! The set of all signals ever seen, optimized to detect new ones.

use crate::iter::MapIter;
use crate::merge::{Inserted, Merged};
use crate::parts::{self, Parts};
use crate::ranges::{Index, Ranges};
use crate::signals::{Signals, runs};
use alloc::alloc::{Layout, alloc_zeroed, handle_alloc_error};
use alloc::vec::Vec;
use core::fmt;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU64, Ordering};

/// Remembers which signals have been seen.
///
/// The map is exact: it misses no new signal and calls no known signal new. Within its [`Ranges`]
/// there is always room. Outside them it remembers signals until its fallback is full, and then
/// reports that.
///
/// # Threads and processes
///
/// A map may be used by several threads at once, without locks. Processes share a map in memory of
/// theirs: see [`open`](NoveltyMap::open).
///
/// # Memory
///
/// One bit for each byte of text: 22 MB for the 176 MB of a kernel built for fuzzing. Allocators give
/// out such blocks without touching them, and a page that is never touched takes no memory. Room for
/// a signal outside the ranges takes 16 to 32 bytes.
pub struct NoveltyMap<M = Vec<AtomicU64>> {
    ranges: Ranges,
    index: Index,
    /// Invariant: as long as [`parts::words`] says.
    memory: M,
    capacity: usize,
}

/// Why memory cannot hold a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MemoryError {
    /// The memory has fewer words than [`NoveltyMap::words`] requires.
    TooSmall {
        /// The number of words that the map requires.
        needed: usize,
        /// The number of words in the memory.
        given: usize,
    },
    /// The memory holds a map with other ranges or another fallback, or no map at all.
    OtherMap,
}

impl fmt::Display for MemoryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot use the memory as a shared map: ")?;
        match self {
            MemoryError::TooSmall { needed, given } => {
                write!(f, "it has {given} words but the map takes {needed}; make it larger")
            }
            MemoryError::OtherMap => f.write_str(
                "it holds other data, or a map with other ranges or another fallback; pass the \
                 same ranges and fallback everywhere, and fresh memory",
            ),
        }
    }
}

impl core::error::Error for MemoryError {}

impl NoveltyMap {
    /// The default size of the fallback: signals outside the ranges.
    pub const FALLBACK: usize = 4096;

    /// The largest fallback, in signals.
    pub const MAX_FALLBACK: usize = 1 << 20;

    /// Makes an empty map. Allocates.
    #[must_use]
    pub fn new(ranges: Ranges) -> NoveltyMap {
        NoveltyMap::with_fallback(ranges, NoveltyMap::FALLBACK)
    }

    /// Makes an empty map with room for `capacity` signals outside the ranges, or
    /// [`MAX_FALLBACK`](Self::MAX_FALLBACK) if that is less. Allocates.
    #[must_use]
    pub fn with_fallback(ranges: Ranges, capacity: usize) -> NoveltyMap {
        let capacity = capacity.min(NoveltyMap::MAX_FALLBACK);
        let index = Index::new(&ranges);
        let memory = zeroed(parts::words(&index, capacity));
        NoveltyMap { ranges, index, memory, capacity }
    }

    /// The number of 64-bit words that [`open`](Self::open) requires.
    #[must_use]
    pub fn words(ranges: &Ranges, capacity: usize) -> usize {
        parts::words(&Index::new(ranges), capacity.min(NoveltyMap::MAX_FALLBACK))
    }
}

impl<M: AsRef<[AtomicU64]>> NoveltyMap<M> {
    /// Opens the map in memory that processes share, with room for `capacity` signals outside the
    /// ranges, or [`MAX_FALLBACK`](NoveltyMap::MAX_FALLBACK) if that is less. All must pass the same
    /// ranges and the same capacity. Words that are all 0 are an empty map, so fresh memory needs no
    /// preparation. Allocates for each range.
    ///
    /// If a process dies, the map stays usable. A process that writes to the memory without this
    /// type can make others see too many or too few signals, but do no other harm.
    ///
    /// ```
    /// use kcov_signal::{NoveltyMap, Ranges};
    /// use std::sync::atomic::AtomicU64;
    ///
    /// let text = Ranges::single(0xffff_ffff_8100_0000..0xffff_ffff_8200_0000)?;
    /// // Between processes, the words are in memory that all of them map, such as a memfd.
    /// let words = NoveltyMap::words(&text, NoveltyMap::FALLBACK);
    /// let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
    ///
    /// let one = NoveltyMap::open(&memory[..], text.clone(), NoveltyMap::FALLBACK)?;
    /// let other = NoveltyMap::open(&memory[..], text, NoveltyMap::FALLBACK)?;
    /// assert_eq!(one.merge(&[0xffff_ffff_8100_0010]).new, 1);
    /// assert_eq!(other.merge(&[0xffff_ffff_8100_0010]).new, 0);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    ///
    /// - [`TooSmall`](MemoryError::TooSmall): `memory` has too few words.
    /// - [`OtherMap`](MemoryError::OtherMap): `memory` holds something else.
    pub fn open(memory: M, ranges: Ranges, capacity: usize) -> Result<Self, MemoryError> {
        let capacity = capacity.min(NoveltyMap::MAX_FALLBACK);
        let index = Index::new(&ranges);
        let (needed, given) = (parts::words(&index, capacity), memory.as_ref().len());
        if given < needed {
            return Err(MemoryError::TooSmall { needed, given });
        }
        if !parts::claim(memory.as_ref(), &ranges, capacity) {
            return Err(MemoryError::OtherMap);
        }
        Ok(NoveltyMap { ranges, index, memory, capacity })
    }

    #[inline]
    fn parts(&self) -> Parts<'_> {
        Parts::new(self.memory.as_ref(), &self.index, self.capacity)
    }

    /// Whether any of the signals is new. Stops soon after the first new one.
    #[inline]
    #[must_use]
    pub fn has_new(&self, signals: impl Signals) -> bool {
        self.scan(signals, |_| false)
    }

    /// Calls `what` with each occurrence of a new signal, in order. Remembers nothing.
    pub fn for_each_new(&self, signals: impl Signals, mut what: impl FnMut(u64)) {
        self.scan(signals, |signal| {
            what(signal);
            true
        });
    }

    /// Remembers the signals. If several callers merge the same new signal at once, only one of
    /// them counts it as [`new`](Merged::new).
    ///
    /// Each caller counts signals that do not fit. While others take the last places of the
    /// fallback, it may also count one that they remember, or one that would fit after all, as
    /// [`unrecorded`](Merged::unrecorded).
    pub fn merge(&self, signals: impl Signals) -> Merged {
        self.merge_with(signals, |_| {})
    }

    /// Remembers the signals and calls `what`, in order, with each occurrence that it counts as new or
    /// unrecorded.
    pub fn merge_with(&self, signals: impl Signals, mut what: impl FnMut(u64)) -> Merged {
        let mut merged = Merged::default();
        self.scan(signals, |signal| {
            let inserted = self.remember(signal);
            merged.add(inserted);
            if inserted != Inserted::Known {
                what(signal);
            }
            true
        });
        merged
    }

    /// Calls `new` with each signal that has not been seen, until it returns false. Returns whether it
    /// did.
    #[inline]
    fn scan(&self, signals: impl Signals, mut new: impl FnMut(u64) -> bool) -> bool {
        let parts = self.parts();
        // Most signals are in the largest span. One bound is enough for them: that of its words.
        let span = self.index.largest();
        let first = (span.offset / 64) as usize;
        let bits = &parts.bits[first..first + (span.bytes / 64) as usize];
        let stopped = runs(signals, |run| {
            let all = run.all(|signal| {
                let within = signal.wrapping_sub(span.start);
                let word = usize::try_from(within / 64).ok().and_then(|index| bits.get(index));
                word.is_some_and(|word| word.load(Ordering::Relaxed) >> (within % 64) & 1 != 0)
                    || self.is_known(parts, signal)
                    || new(signal)
            });
            if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        stopped.is_break()
    }

    /// Whether a signal has been seen, wherever it is.
    #[cold]
    #[inline(never)]
    fn is_known(&self, parts: Parts<'_>, signal: u64) -> bool {
        match self.index.offset(signal) {
            Some(offset) => {
                let word = parts.bits[offset as usize / 64].load(Ordering::Relaxed);
                word >> (offset % 64) & 1 != 0
            }
            None => parts.contains_outside(signal),
        }
    }

    pub(crate) fn remember(&self, signal: u64) -> Inserted {
        match self.index.offset(signal) {
            Some(offset) => self.parts().insert(offset),
            None => self.parts().insert_outside(signal),
        }
    }

    /// Whether a signal has been seen.
    #[must_use]
    pub fn contains(&self, signal: u64) -> bool {
        self.is_known(self.parts(), signal)
    }

    /// The number of signals in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts().len()
    }

    /// Whether the map is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The signals of the map, in ascending order. It may miss signals that other callers merge
    /// meanwhile. Allocates to sort any signals outside the ranges.
    #[must_use]
    pub fn iter(&self) -> MapIter<'_> {
        MapIter::new(&self.index, self.parts().bits, self.parts().outside())
    }

    /// Forgets all signals. Of those that others merge meanwhile, the map may forget some, and count
    /// some as new once more. Nothing else goes wrong.
    pub fn clear(&self) {
        self.parts().clear();
    }

    /// The ranges, for which there is always room.
    #[must_use]
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The size of the fallback: how many signals outside the ranges the map can hold.
    #[must_use]
    pub fn fallback_capacity(&self) -> usize {
        self.capacity
    }

    /// The number of signals outside the ranges that the map holds.
    #[must_use]
    pub fn fallback_len(&self) -> usize {
        self.parts().len_outside()
    }
}

/// Shows numbers, not the signals: there may be millions.
impl<M: AsRef<[AtomicU64]>> fmt::Debug for NoveltyMap<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoveltyMap")
            .field("ranges", &self.ranges)
            .field("len", &self.len())
            .field("fallback_len", &self.fallback_len())
            .field("fallback_capacity", &self.fallback_capacity())
            .finish_non_exhaustive()
    }
}

impl Clone for NoveltyMap {
    fn clone(&self) -> NoveltyMap {
        let copy = NoveltyMap::with_fallback(self.ranges.clone(), self.capacity);
        for signal in self {
            copy.remember(signal);
        }
        copy
    }
}

impl<'m, M: AsRef<[AtomicU64]>> IntoIterator for &'m NoveltyMap<M> {
    type Item = u64;
    type IntoIter = MapIter<'m>;

    fn into_iter(self) -> MapIter<'m> {
        self.iter()
    }
}

/// Allocates words of 0. The allocator need not touch their pages.
fn zeroed(words: usize) -> Vec<AtomicU64> {
    let layout = Layout::array::<AtomicU64>(words).expect("less than a GiB");
    // SAFETY: the layout is not empty, because `parts::words` counts the head of each map.
    let start = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    if start.is_null() {
        handle_alloc_error(layout);
    }
    // SAFETY: the global allocator returned this block for the layout of `words` atomics. All bits 0
    // are a valid atomic, and nobody else has the pointer.
    unsafe { Vec::from_raw_parts(start, words, words) }
}
