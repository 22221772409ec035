//! A novelty map that threads or processes share: words of memory, and no locks.

mod words;

use super::blocks::all_runs;
use super::blocks::sealed::Source;
use super::fallback::Inserted;
use super::flat::{Bits, CELL_WORDS};
use super::iter::{Cells, Iter};
use super::known::{Known, Memory, Outside};
use super::merge::{Merged, Remember, merge};
use super::path::Path;
use super::ranges::{Index, Ranges};
use crate::run::Run;
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use words::{HEAD, IDENTITY, identity, slots};

pub(crate) use words::Words;

/// A [`NoveltyMap`](super::NoveltyMap) in memory that threads or processes share.
///
/// Words that are all 0 are an empty map, so a fresh mapping of shared memory needs no preparation.
/// Whoever merges a signal first is told that it is new, and nobody else is; there are no locks,
/// and memory that all have seen stays in everybody's cache, because a word is only written where
/// a bit has to be set.
///
/// It has a bit for each byte of text, whatever the size of the ranges. Pages of shared memory in
/// which nothing was seen take no memory.
///
/// A process that dies leaves a map that is as usable as before. One that writes other words than
/// through this type can make all others see too much or too little, and nothing worse.
#[derive(Clone, Debug)]
pub struct SharedMap<'m> {
    index: Index,
    words: Words<'m, AtomicU64>,
    path: Path,
}

/// Why memory cannot be used as a shared map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SharedError {
    /// There are fewer words than [`SharedMap::words`] says.
    TooSmall {
        /// Words that are needed.
        needed: usize,
        /// Words that there are.
        given: usize,
    },
    /// The memory is another map's, for other ranges or another fallback, or no map.
    OtherMap,
}

impl fmt::Display for SharedError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cannot use the memory as a shared map: ")?;
        match self {
            SharedError::TooSmall { needed, given } => {
                write!(f, "it has {given} words and {needed} are needed; make it larger")
            }
            SharedError::OtherMap => f.write_str(
                "it holds a map of other ranges, or something else; give all users the same \
                 ranges and fallback, and fresh memory",
            ),
        }
    }
}

impl core::error::Error for SharedError {}

impl<'m> SharedMap<'m> {
    /// Words of memory that a map takes.
    #[must_use]
    pub fn words(ranges: &Ranges, fallback: usize) -> usize {
        HEAD + (Index::new(ranges).bytes() / 64) as usize + slots(fallback)
    }

    /// The map in that memory, which all users have to name the same ranges and fallback for.
    ///
    /// # Errors
    ///
    /// - [`TooSmall`](SharedError::TooSmall): there are not enough words.
    /// - [`OtherMap`](SharedError::OtherMap): the memory is not 0, and not a map of these ranges.
    pub fn new(
        memory: &'m [AtomicU64],
        ranges: &Ranges,
        fallback: usize,
    ) -> Result<SharedMap<'m>, SharedError> {
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
        let words = Words { head, bits, slots, capacity: fallback as u64 };
        Ok(SharedMap { index: Index::new(ranges), words, path: Path::detect() })
    }

    pub(crate) fn known(&self) -> Known<'_> {
        let memory = Memory::Bits(Run::from(self.words.bits));
        Known { index: &self.index, memory, outside: Outside::Shared(self.words) }
    }

    /// Whether any of the signals has not been seen. Stops soon after the first one.
    #[inline]
    #[must_use]
    pub fn has_new(&self, signals: impl Source) -> bool {
        let known = self.known();
        !all_runs(signals, |run| known.contains_all(self.path, run))
    }

    /// Remembers the signals. Of several that merge the same one at once, one is told that it was
    /// new.
    pub fn merge(&self, signals: impl Source) -> Merged {
        self.merge_with(signals, |_| {})
    }

    /// Remembers the signals and calls `what` with each that was new; those that cannot be
    /// remembered come each time.
    pub fn merge_with(&self, signals: impl Source, what: impl FnMut(u64)) -> Merged {
        merge(&mut &*self, signals, what)
    }

    /// Whether a signal has been seen.
    #[inline]
    #[must_use]
    pub fn contains(&self, signal: impl Into<u64>) -> bool {
        self.known().contains(signal.into())
    }

    /// The signals, in ascending order. What others merge meanwhile may come or not. Allocates
    /// where some are outside of the ranges, to sort them.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        let cells = Cells::Shared(SharedCells(self.words.bits));
        Iter::new(&self.index, cells, self.words.outside())
    }
}

impl Remember for &SharedMap<'_> {
    fn knows_all(&self, run: Run<'_>) -> bool {
        self.known().contains_all(self.path, run)
    }

    fn remember(&mut self, signal: u64) -> Inserted {
        match self.index.offset(signal) {
            Some(offset) => self.words.insert(offset),
            None => self.words.insert_outside(signal),
        }
    }
}

impl<'s> IntoIterator for &'s SharedMap<'_> {
    type Item = u64;
    type IntoIter = Iter<'s>;

    fn into_iter(self) -> Iter<'s> {
        self.iter()
    }
}

/// The bits of a shared map.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SharedCells<'m>(&'m [AtomicU64]);

impl SharedCells<'_> {
    pub(crate) fn cell(self, cell: usize) -> Bits {
        let words = &self.0[cell * CELL_WORDS..][..CELL_WORDS];
        core::array::from_fn(|index| words[index].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests;
