//! The parts of a shared map's memory, and atomic operations on them.

use crate::fallback::{Inserted, first_slot};
use crate::ranges::Ranges;
use core::sync::atomic::{AtomicU64, Ordering};

/// Indices of the words before the bits: the map's identity and the state of the fallback.
pub(super) const IDENTITY: usize = 0;
pub(super) const LEN: usize = 1;
pub(super) const HAS_ZERO: usize = 2;
pub(super) const HEAD: usize = 8;

/// Identifies the map in the memory; never 0.
pub(super) fn identity(ranges: &Ranges, fallback: usize) -> u64 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&(fallback as u64).to_le_bytes());
    for range in ranges.iter() {
        crc.update(&range.start.to_le_bytes());
        crc.update(&range.end.to_le_bytes());
    }
    u64::from_be_bytes(*b"kcov\x01\0\0\0") | u64::from(crc.finalize()) & 0x00ff_ffff
}

/// The operations that an atomic word needs. The model checker implements them too.
pub(crate) trait Word {
    fn load(&self) -> u64;
    fn fetch_or(&self, bits: u64) -> u64;
    fn fetch_add(&self, number: u64) -> u64;
    fn fetch_sub(&self, number: u64) -> u64;
    /// Stores `new` if the word is 0. Returns the previous value.
    fn claim(&self, new: u64) -> u64;
    /// Stores 0. Returns the previous value.
    fn take(&self) -> u64;
}

macro_rules! impl_word {
    ($atomic:ty) => {
        /// Relaxed everywhere: bits and slots are independent and publish no other memory. The
        /// modification order of a single word decides who is first.
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

            fn take(&self) -> u64 {
                self.swap(0, Ordering::Relaxed)
            }
        }
    };
}

#[cfg(test)]
pub(super) use impl_word;

impl_word!(AtomicU64);

impl<W> Clone for Parts<'_, W> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<W> Copy for Parts<'_, W> {}

/// The parts of a shared map's memory. The map gives the bits their meaning.
pub(crate) struct Parts<'m, W> {
    pub(super) head: &'m [W],
    pub(super) bits: &'m [W],
    /// A power of two of slots. 0 is a free slot; only [`clear`](Parts::clear) changes a used slot.
    pub(super) slots: &'m [W],
    pub(super) capacity: u64,
}

impl<W: Word> Parts<'_, W> {
    #[cfg(test)]
    pub(super) fn contains(&self, offset: u32) -> bool {
        self.bits[offset as usize / 64].load() >> (offset % 64) & 1 != 0
    }

    pub(super) fn insert(&self, offset: u32) -> Inserted {
        let (word, bit) = (&self.bits[offset as usize / 64], 1 << (offset % 64));
        if word.load() & bit != 0 || word.fetch_or(bit) & bit != 0 {
            Inserted::Known
        } else {
            Inserted::New
        }
    }

    /// The slot of a number, or the free slot where the search ends, and the value seen there.
    /// `None` if there is neither, which takes a writer that does not use this type.
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

    pub(crate) fn contains_outside(&self, number: u64) -> bool {
        if number == 0 {
            return self.head[HAS_ZERO].load() != 0;
        }
        let first = first_slot(number, self.slots.len());
        self.find(number, first).is_some_and(|(_, found)| found == number)
    }

    pub(super) fn insert_outside(&self, number: u64) -> Inserted {
        if self.contains_outside(number) {
            return Inserted::Known;
        }
        // Reserve a place first, and give it back if another caller was faster. So there are never
        // more numbers than the capacity.
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

    pub(super) fn is_empty(&self) -> bool {
        self.bits.iter().all(|word| word.load() == 0) && self.outside().next().is_none()
    }

    pub(super) fn count_inside(&self) -> usize {
        self.bits.iter().map(|word| word.load().count_ones() as usize).sum()
    }

    /// Forgets everything. A place outside the ranges is given back by whoever empties it, so the
    /// number of places stays right while others insert.
    pub(super) fn clear(&self) {
        self.bits.iter().filter(|word| word.load() != 0).for_each(|word| _ = word.take());
        for word in self.slots.iter().chain([&self.head[HAS_ZERO]]) {
            if word.load() != 0 && word.take() != 0 {
                self.head[LEN].fetch_sub(1);
            }
        }
    }

    pub(super) fn outside(&self) -> impl Iterator<Item = u64> {
        let zero = (self.head[HAS_ZERO].load() != 0).then_some(0);
        zero.into_iter().chain(self.slots.iter().map(Word::load).filter(|slot| *slot != 0))
    }
}
