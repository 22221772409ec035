//! A novelty map that threads or processes share: words of memory, and no locks.

use super::blocks::sealed::{Blocks, Source};
use super::blocks::{BLOCK, for_each};
use super::fallback::{Inserted, first_slot};
use super::flat::{Bits, CELL_WORDS};
use super::iter::{Cells, Iter};
use super::novelty::Merged;
use super::ranges::{Index, Ranges};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

/// The words before the bits: who the map is for, and what the fallback holds.
const IDENTITY: usize = 0;
const LEN: usize = 1;
const HAS_ZERO: usize = 2;
const HEAD: usize = 8;

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
        Ok(SharedMap { index: Index::new(ranges), words })
    }

    /// Whether any of the signals has not been seen. Stops soon after the first one.
    #[must_use]
    pub fn has_new(&self, signals: impl Source) -> bool {
        let mut blocks = signals.blocks();
        let mut space = [0; BLOCK];
        loop {
            let block = blocks.next_block(&mut space);
            if block.is_empty() {
                return false;
            }
            if !block.iter().all(|&signal| self.contains(signal)) {
                return true;
            }
        }
    }

    /// Remembers the signals. Of several that merge the same one at once, one is told that it was
    /// new.
    pub fn merge(&self, signals: impl Source) -> Merged {
        self.merge_with(signals, |_| {})
    }

    /// Remembers the signals and calls `what` with each that was new; those that cannot be
    /// remembered come each time.
    pub fn merge_with(&self, signals: impl Source, mut what: impl FnMut(u64)) -> Merged {
        let mut merged = Merged::default();
        for_each(signals, |signal| {
            let inserted = match self.index.offset(signal) {
                Some(offset) => self.words.insert(offset),
                None => self.words.insert_outside(signal),
            };
            merged.add(inserted);
            if inserted != Inserted::Known {
                what(signal);
            }
        });
        merged
    }

    /// Whether a signal has been seen.
    #[inline]
    #[must_use]
    pub fn contains(&self, signal: impl Into<u64>) -> bool {
        let signal = signal.into();
        match self.index.offset(signal) {
            Some(offset) => self.words.contains(offset),
            None => self.words.contains_outside(signal),
        }
    }

    /// The signals, in ascending order. What others merge meanwhile may come or not. Allocates
    /// where some are outside of the ranges, to sort them.
    #[must_use]
    pub fn iter(&self) -> Iter<'_> {
        let cells = Cells::Shared(SharedCells(self.words.bits));
        Iter::new(&self.index, cells, self.words.outside())
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

/// A number of two slots for each signal, so that every search meets a free one.
fn slots(fallback: usize) -> usize {
    fallback.saturating_mul(2).max(2).next_power_of_two()
}

/// Says which map the memory holds; never 0.
fn identity(ranges: &Ranges, fallback: usize) -> u64 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&(fallback as u64).to_le_bytes());
    for range in ranges.iter() {
        crc.update(&range.start.to_le_bytes());
        crc.update(&range.end.to_le_bytes());
    }
    u64::from_be_bytes(*b"kcov\x01\0\0\0") | u64::from(crc.finalize()) & 0x00ff_ffff
}

/// What of an atomic word is used here; the model checker has its own.
pub(crate) trait Word {
    fn load(&self) -> u64;
    fn fetch_or(&self, bits: u64) -> u64;
    fn fetch_add(&self, number: u64) -> u64;
    fn fetch_sub(&self, number: u64) -> u64;
    /// Stores `new` if the word is 0; what it was.
    fn claim(&self, new: u64) -> u64;
}

macro_rules! impl_word {
    ($atomic:ty) => {
        /// Relaxed everywhere: each bit and each slot stands for itself, and no other memory is
        /// published by it. Who is first is decided by the order of modifications of one word.
        impl Word for $atomic {
            fn load(&self) -> u64 {
                <$atomic>::load(self, Ordering::Relaxed)
            }

            fn fetch_or(&self, bits: u64) -> u64 {
                <$atomic>::fetch_or(self, bits, Ordering::Relaxed)
            }

            fn fetch_add(&self, number: u64) -> u64 {
                <$atomic>::fetch_add(self, number, Ordering::Relaxed)
            }

            fn fetch_sub(&self, number: u64) -> u64 {
                <$atomic>::fetch_sub(self, number, Ordering::Relaxed)
            }

            fn claim(&self, new: u64) -> u64 {
                match self.compare_exchange(0, new, Ordering::Relaxed, Ordering::Relaxed) {
                    Ok(old) | Err(old) => old,
                }
            }
        }
    };
}

impl_word!(AtomicU64);

impl<W> Clone for Words<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Words<'_, W> {}

/// The words of a map: what is done to them, without what they are about.
#[derive(Debug)]
struct Words<'m, W> {
    head: &'m [W],
    bits: &'m [W],
    /// A power of two; 0 is a free slot, and what is not 0 stays.
    slots: &'m [W],
    capacity: u64,
}

impl<W: Word> Words<'_, W> {
    #[inline]
    fn contains(&self, offset: u32) -> bool {
        self.bits[offset as usize / 64].load() >> (offset % 64) & 1 != 0
    }

    fn insert(&self, offset: u32) -> Inserted {
        let (word, bit) = (&self.bits[offset as usize / 64], 1 << (offset % 64));
        if word.load() & bit != 0 || word.fetch_or(bit) & bit != 0 {
            Inserted::Known
        } else {
            Inserted::New
        }
    }

    /// The slot of a number, or the free one where the search ends, with what was seen there. None
    /// if there is neither, which takes somebody who writes other than through this type.
    fn find(&self, number: u64, mut at: usize) -> Option<(usize, u64)> {
        for _ in 0..self.slots.len() {
            let found = self.slots[at].load();
            if found == 0 || found == number {
                return Some((at, found));
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        None
    }

    fn contains_outside(&self, number: u64) -> bool {
        if number == 0 {
            return self.head[HAS_ZERO].load() != 0;
        }
        let first = first_slot(number, self.slots.len());
        self.find(number, first).is_some_and(|(_, found)| found == number)
    }

    fn insert_outside(&self, number: u64) -> Inserted {
        if self.contains_outside(number) {
            return Inserted::Known;
        }
        // A place is taken first and given back if another one was faster, so that there are never
        // more than the capacity.
        if self.head[LEN].fetch_add(1) >= self.capacity {
            self.head[LEN].fetch_sub(1);
            return Inserted::Full;
        }
        let inserted = self.claim(number);
        if inserted != Inserted::New {
            self.head[LEN].fetch_sub(1);
        }
        inserted
    }

    fn claim(&self, number: u64) -> Inserted {
        if number == 0 {
            let before = self.head[HAS_ZERO].claim(1);
            return if before == 0 { Inserted::New } else { Inserted::Known };
        }
        let mut at = first_slot(number, self.slots.len());
        while let Some((slot, found)) = self.find(number, at) {
            let found = if found == 0 { self.slots[slot].claim(number) } else { found };
            if found == 0 {
                return Inserted::New;
            }
            if found == number {
                return Inserted::Known;
            }
            at = slot;
        }
        Inserted::Full
    }

    fn outside(&self) -> impl Iterator<Item = u64> {
        let zero = (self.head[HAS_ZERO].load() != 0).then_some(0);
        zero.into_iter().chain(self.slots.iter().map(Word::load).filter(|slot| *slot != 0))
    }
}

#[cfg(test)]
mod tests {
    //! All interleavings of the smallest cases, by the model checker loom.

    use super::*;
    use std::sync::Arc;
    use std::vec::Vec;

    type Checked = loom::sync::atomic::AtomicU64;

    impl_word!(Checked);

    struct Memory {
        head: Vec<Checked>,
        bits: Vec<Checked>,
        slots: Vec<Checked>,
        capacity: u64,
    }

    impl Memory {
        fn new(capacity: usize) -> Arc<Memory> {
            let words = |count| (0..count).map(|_| Checked::new(0)).collect();
            let (head, bits, slots) = (words(HEAD), words(1), words(slots(capacity)));
            Arc::new(Memory { head, bits, slots, capacity: capacity as u64 })
        }

        fn words(&self) -> Words<'_, Checked> {
            let Memory { head, bits, slots, capacity } = self;
            Words { head, bits, slots, capacity: *capacity }
        }
    }

    /// Runs both in every order; what they give.
    fn both<T: Send + 'static>(
        memory: &Arc<Memory>,
        first: impl FnOnce(Words<'_, Checked>) -> T + Send + 'static,
        second: impl FnOnce(Words<'_, Checked>) -> T,
    ) -> (T, T) {
        let shared = Arc::clone(memory);
        let thread = loom::thread::spawn(move || first(shared.words()));
        let second = second(memory.words());
        (thread.join().unwrap(), second)
    }

    #[test]
    fn one_of_two_is_told_that_a_bit_is_new() {
        loom::model(|| {
            let memory = Memory::new(1);
            let told = both(&memory, |words| words.insert(5), |words| words.insert(5));
            assert!(matches!(
                told,
                (Inserted::New, Inserted::Known) | (Inserted::Known, Inserted::New)
            ));
            assert!(memory.words().contains(5) && !memory.words().contains(6));
        });
    }

    #[test]
    fn neighbouring_bits_do_not_overwrite_each_other() {
        loom::model(|| {
            let memory = Memory::new(1);
            let told = both(&memory, |words| words.insert(5), |words| words.insert(6));
            assert_eq!(told, (Inserted::New, Inserted::New));
            assert!(memory.words().contains(5) && memory.words().contains(6));
        });
    }

    #[test]
    fn one_of_two_is_told_that_an_outsider_is_new() {
        for number in [0, 7] {
            loom::model(move || {
                let memory = Memory::new(2);
                let insert = move |words: Words<'_, Checked>| words.insert_outside(number);
                let told = both(&memory, insert, insert);
                assert!(matches!(
                    told,
                    (Inserted::New, Inserted::Known) | (Inserted::Known, Inserted::New)
                ));
                assert!(memory.words().contains_outside(number));
                assert_eq!(memory.words().outside().collect::<Vec<_>>(), [number]);
                assert_eq!(memory.head[LEN].load(Ordering::Relaxed), 1);
            });
        }
    }

    #[test]
    fn outsiders_that_want_the_same_slot_both_get_one() {
        let second = (8..).find(|&other| first_slot(other, 4) == first_slot(7, 4)).unwrap();
        loom::model(move || {
            let memory = Memory::new(2);
            let told = both(
                &memory,
                |words| words.insert_outside(7),
                move |words| words.insert_outside(second),
            );
            assert_eq!(told, (Inserted::New, Inserted::New));
            assert!(memory.words().contains_outside(7));
            assert!(memory.words().contains_outside(second));
        });
    }

    #[test]
    fn the_fallback_never_holds_more_than_its_capacity_and_says_who_was_left_out() {
        loom::model(|| {
            let memory = Memory::new(1);
            let told =
                both(&memory, |words| words.insert_outside(7), |words| words.insert_outside(8));
            assert!(matches!(
                told,
                (Inserted::New, Inserted::Full) | (Inserted::Full, Inserted::New)
            ));
            assert_eq!(memory.words().outside().count(), 1);
        });
    }
}
