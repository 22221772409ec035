//! The parts of a map's memory, and atomic operations on them.
//!
//! Everything is relaxed: bits and slots are independent and publish no other memory. The
//! modification order of a single word decides who is first.

use crate::merge::{Inserted, first_slot, slots};
use crate::ranges::{Index, Ranges};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Indices of the words before the bits.
const IDENTITY: usize = 0;
const INSIDE: usize = 1;
const OUTSIDE: usize = 2;
const HAS_ZERO: usize = 3;
const HEAD: usize = 8;

/// The number of words of a map.
pub(crate) fn words(index: &Index, capacity: usize) -> usize {
    HEAD + (index.bytes() / 64) as usize + slots(capacity)
}

/// Marks the memory as a map with these ranges and this fallback. Returns whether it holds nothing
/// else.
pub(crate) fn claim(memory: &[AtomicU64], ranges: &Ranges, capacity: usize) -> bool {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&(capacity as u64).to_le_bytes());
    for range in ranges.iter() {
        crc.update(&range.start.to_le_bytes());
        crc.update(&range.end.to_le_bytes());
    }
    let identity = u64::from_be_bytes(*b"kcov\x02\0\0\0") | u64::from(crc.finalize()) & 0x00ff_ffff;
    let before = memory[IDENTITY].compare_exchange(0, identity, Relaxed, Relaxed);
    before.map_or_else(|found| found == identity, |_| true)
}

/// The parts of a map's memory. The index gives the bits their meaning.
#[derive(Clone, Copy)]
pub(crate) struct Parts<'m> {
    head: &'m [AtomicU64],
    /// One bit per byte of text.
    pub(crate) bits: &'m [AtomicU64],
    /// A power of two of slots. 0 is a free slot; only [`clear`](Parts::clear) changes a used slot.
    slots: &'m [AtomicU64],
    capacity: usize,
}

impl<'m> Parts<'m> {
    /// `memory` has [`words`].
    #[inline]
    pub(crate) fn new(memory: &'m [AtomicU64], index: &Index, capacity: usize) -> Parts<'m> {
        let (head, rest) = memory.split_at(HEAD);
        let (bits, slots) = rest.split_at((index.bytes() / 64) as usize);
        Parts { head, bits, slots, capacity }
    }

    pub(crate) fn insert(self, offset: u32) -> Inserted {
        let (word, bit) = (&self.bits[offset as usize / 64], 1 << (offset % 64));
        // Words are written only to set a bit, so known signals stay in every processor's cache.
        if word.load(Relaxed) & bit != 0 {
            return Inserted::Known;
        }
        self.head[INSIDE].fetch_add(1, Relaxed);
        if word.fetch_or(bit, Relaxed) & bit == 0 {
            return Inserted::New;
        }
        self.head[INSIDE].fetch_sub(1, Relaxed);
        Inserted::Known
    }

    /// The slot of a number, or the free slot where the search ends. `None` if there is neither, which
    /// takes a writer that does not use this type.
    fn find(self, number: u64, first: usize) -> Option<usize> {
        (first..self.slots.len()).chain(0..first).find(|at| {
            let found = self.slots[*at].load(Relaxed);
            found == 0 || found == number
        })
    }

    pub(crate) fn contains_outside(self, number: u64) -> bool {
        if number == 0 {
            return self.head[HAS_ZERO].load(Relaxed) != 0;
        }
        let first = first_slot(number, self.slots.len());
        self.find(number, first).is_some_and(|slot| self.slots[slot].load(Relaxed) == number)
    }

    pub(crate) fn insert_outside(self, number: u64) -> Inserted {
        if self.contains_outside(number) {
            return Inserted::Known;
        }
        // Reserve a place first, and give it back if another caller was faster. So there are never
        // more numbers than the capacity.
        if self.head[OUTSIDE].fetch_add(1, Relaxed) >= self.capacity as u64 {
            self.head[OUTSIDE].fetch_sub(1, Relaxed);
            return Inserted::Full;
        }
        let inserted = self.claim_slot(number);
        if inserted != Inserted::New {
            self.head[OUTSIDE].fetch_sub(1, Relaxed);
        }
        inserted
    }

    fn claim_slot(self, number: u64) -> Inserted {
        if number == 0 {
            let before = self.head[HAS_ZERO].swap(1, Relaxed);
            return if before == 0 { Inserted::New } else { Inserted::Known };
        }
        let mut at = first_slot(number, self.slots.len());
        while let Some(slot) = self.find(number, at) {
            match self.slots[slot].compare_exchange(0, number, Relaxed, Relaxed) {
                Ok(_) => return Inserted::New,
                Err(taken) if taken == number => return Inserted::Known,
                Err(_) => at = slot,
            }
        }
        Inserted::Full
    }

    pub(crate) fn len_outside(self) -> usize {
        self.head[OUTSIDE].load(Relaxed) as usize
    }

    pub(crate) fn len(self) -> usize {
        self.head[INSIDE].load(Relaxed).wrapping_add(self.head[OUTSIDE].load(Relaxed)) as usize
    }

    /// Forgets everything. A place is given back by whoever empties it, so the numbers stay right
    /// while others insert.
    pub(crate) fn clear(self) {
        let take = |word: &AtomicU64| match word.load(Relaxed) {
            0 => 0,
            _ => word.swap(0, Relaxed),
        };
        for word in self.bits {
            self.head[INSIDE].fetch_sub(take(word).count_ones().into(), Relaxed);
        }
        for word in self.slots.iter().chain([&self.head[HAS_ZERO]]) {
            self.head[OUTSIDE].fetch_sub(u64::from(take(word) != 0), Relaxed);
        }
    }

    /// The numbers outside the ranges, in any order.
    pub(crate) fn outside(self) -> impl Iterator<Item = u64> + use<'m> {
        let zero = (self.head[HAS_ZERO].load(Relaxed) != 0).then_some(0);
        let slots = self.slots.iter().map(|slot| slot.load(Relaxed));
        zero.into_iter().chain(slots.filter(|slot| *slot != 0))
    }
}
