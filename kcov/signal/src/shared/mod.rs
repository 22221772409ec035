//! A lock-free novelty map in shared memory.

mod parts;

use crate::arch::Path;
use crate::fallback::{Inserted, slots};
use crate::iter::MapIter;
use crate::known::{Known, Outside};
use crate::merge::{self, Merged, Remember};
use crate::novelty::NoveltyMap;
use crate::ranges::{Index, Ranges};
use crate::run::Run;
use crate::signals::Signals;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use parts::{HEAD, IDENTITY, identity};

pub(crate) use parts::Parts;

/// A [`NoveltyMap`] in memory that threads or processes share, without locks.
///
/// All words 0 is an empty map, so fresh shared memory needs no preparation. Exactly one caller
/// sees each signal as new while there is room; [`merge`](Self::merge) has the details. Words are
/// written only to set a bit, so memory with known signals stays in every processor's cache.
///
/// Pages of shared memory without a seen signal take no memory.
///
/// If a process dies, the map stays usable. A process that writes to the memory without this type
/// can make others see too many or too few signals, but do no other harm.
///
/// ```
/// use kcov::{fake::Kernel, mode::TracePc};
/// use kcov_signal::{Ranges, SharedMap};
/// use std::sync::atomic::AtomicU64;
/// use std::thread;
///
/// let text = Ranges::single(0xffff_ffff_8100_0000..0xffff_ffff_8200_0000)?;
/// // Between processes, the words are in memory that all of them map, such as a memfd.
/// let words = SharedMap::words(&text, SharedMap::FALLBACK);
/// let memory: Vec<AtomicU64> = (0..words).map(|_| AtomicU64::new(0)).collect();
///
/// let run = || -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
///     let map = SharedMap::new(&memory, &text)?;
///     let kernel = Kernel::linux();
///     let mut device = kernel.builder().open()?;
///     let session = device.enable(TracePc)?;
///     kernel.call(|trace| trace.pc(0xffff_ffff_8100_0010)); // the input
///     Ok(map.merge(session.trace()).new)
/// };
/// let new = thread::scope(|scope| {
///     [scope.spawn(run), scope.spawn(run)].map(|thread| thread.join().expect("no panic"))
/// });
/// let [first, second] = new.map(|new| new.expect("a merged trace"));
/// assert_eq!(first + second, 1, "one of the two saw it first");
/// assert_eq!(SharedMap::new(&memory, &text)?.len(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct SharedMap<'m> {
    ranges: Ranges,
    index: Index,
    parts: Parts<'m, AtomicU64>,
    path: Path,
}

/// Why memory cannot hold a shared map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedError {
    /// The memory has fewer words than [`SharedMap::words`] requires.
    TooSmall {
        /// The number of words that the map requires.
        needed: usize,
        /// The number of words in the memory.
        given: usize,
    },
    /// The memory holds a map with other ranges or another fallback, or no map at all.
    OtherMap,
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot use the memory as a shared map: ")?;
        match self {
            SharedError::TooSmall { needed, given } => {
                write!(f, "it has {given} words but the map takes {needed}; make it larger")
            }
            SharedError::OtherMap => f.write_str(
                "it holds other data, or a map with other ranges or another fallback; pass the \
                 same ranges and fallback everywhere, and fresh memory",
            ),
        }
    }
}

impl core::error::Error for SharedError {}

impl<'m> SharedMap<'m> {
    /// The default size of the fallback, as of a [`NoveltyMap`].
    pub const FALLBACK: usize = NoveltyMap::FALLBACK;

    /// The number of 64-bit words that a map with room for `fallback` signals outside the ranges
    /// requires.
    #[must_use]
    pub fn words(ranges: &Ranges, fallback: usize) -> usize {
        HEAD + (Index::new(ranges).bytes() / 64) as usize
            + slots(fallback.min(NoveltyMap::MAX_FALLBACK))
    }

    /// Opens the map in `memory`, with room for [`FALLBACK`](Self::FALLBACK) signals outside the
    /// ranges. All users must pass the same ranges. Allocates for each range.
    ///
    /// # Errors
    ///
    /// - [`TooSmall`](SharedError::TooSmall): `memory` has too few words.
    /// - [`OtherMap`](SharedError::OtherMap): `memory` holds something else.
    pub fn new(memory: &'m [AtomicU64], ranges: &Ranges) -> Result<SharedMap<'m>, SharedError> {
        SharedMap::with_fallback(memory, ranges, SharedMap::FALLBACK)
    }

    /// Opens the map in `memory`, with room for `fallback` signals outside the ranges, or
    /// [`NoveltyMap::MAX_FALLBACK`] if that is less. All users must pass the same ranges and the same
    /// fallback. Allocates for each range.
    ///
    /// # Errors
    ///
    /// Same as [`new`](Self::new).
    pub fn with_fallback(
        memory: &'m [AtomicU64],
        ranges: &Ranges,
        fallback: usize,
    ) -> Result<SharedMap<'m>, SharedError> {
        let fallback = fallback.min(NoveltyMap::MAX_FALLBACK);
        let needed = SharedMap::words(ranges, fallback);
        let Some(memory) = memory.get(..needed) else {
            return Err(SharedError::TooSmall { needed, given: memory.len() });
        };
        let identity = identity(ranges, fallback);
        let claimed =
            memory[IDENTITY].compare_exchange(0, identity, Ordering::Relaxed, Ordering::Relaxed);
        if claimed.is_err_and(|found| found != identity) {
            return Err(SharedError::OtherMap);
        }
        let (head, rest) = memory.split_at(HEAD);
        let (bits, slots) = rest.split_at(rest.len() - slots(fallback));
        let parts = Parts { head, bits, slots, capacity: fallback as u64 };
        let (index, ranges) = (Index::new(ranges), ranges.clone());
        Ok(SharedMap { ranges, index, parts, path: Path::detect() })
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

    /// Remembers the signals. If several callers merge the same new signal at once, only one of
    /// them counts it as [`new`](Merged::new).
    ///
    /// Each caller counts signals that do not fit. While others take the last places of the
    /// fallback, it may also count one that they remember, or one that would fit after all, as
    /// [`unrecorded`](Merged::unrecorded).
    pub fn merge(&self, signals: impl Signals) -> Merged {
        self.merge_with(signals, |_| {})
    }

    /// Same as [`merge`](Self::merge), and calls `what`, in order, with each occurrence that it counts
    /// as new or unrecorded.
    pub fn merge_with(&self, signals: impl Signals, what: impl FnMut(u64)) -> Merged {
        merge::merge(&mut &*self, signals, what)
    }

    /// Whether a signal has been seen.
    #[inline]
    #[must_use]
    pub fn contains(&self, signal: u64) -> bool {
        self.known().contains(signal)
    }

    /// The signals of the map, in ascending order. It may miss signals that other callers merge
    /// meanwhile. Allocates to sort any signals outside the ranges.
    #[must_use]
    pub fn iter(&self) -> MapIter<'_> {
        MapIter::new(&self.index, Run::Shared(self.parts.bits), self.parts.outside())
    }

    /// The number of signals in the map. Reads the whole map to count them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parts.count_inside() + self.parts.outside().count()
    }

    /// Whether the map is empty. Reads the map up to the first signal.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Forgets all signals. Of those that others merge meanwhile, the map may forget some, and count
    /// some as new once more. Nothing else goes wrong.
    pub fn clear(&self) {
        self.parts.clear();
    }

    /// The ranges, for which there is always room.
    #[must_use]
    pub fn ranges(&self) -> &Ranges {
        &self.ranges
    }

    /// The size of the fallback: how many signals outside the ranges the map can hold.
    #[must_use]
    pub fn fallback_capacity(&self) -> usize {
        self.parts.capacity as usize
    }

    pub(crate) fn known(&self) -> Known<'_> {
        let bits = Run::Shared(self.parts.bits);
        Known { path: self.path, index: &self.index, bits, outside: Outside::Shared(self.parts) }
    }
}

/// Shows sizes, and reads nothing of the memory.
impl fmt::Debug for SharedMap<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMap")
            .field("ranges", &self.ranges)
            .field("fallback_capacity", &self.fallback_capacity())
            .finish_non_exhaustive()
    }
}

impl Remember for &SharedMap<'_> {
    fn known(&self) -> Known<'_> {
        SharedMap::known(self)
    }

    fn remember(&mut self, signal: u64) -> Inserted {
        match self.index.offset(signal) {
            Some(offset) => self.parts.insert(offset),
            None => self.parts.insert_outside(signal),
        }
    }
}

impl<'s> IntoIterator for &'s SharedMap<'_> {
    type Item = u64;
    type IntoIter = MapIter<'s>;

    fn into_iter(self) -> MapIter<'s> {
        self.iter()
    }
}

#[cfg(all(test, any(target_arch = "x86_64", target_arch = "aarch64")))]
mod tests;
