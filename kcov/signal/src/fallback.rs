//! Addresses outside the ranges: a bounded table that reports when it is full.

use alloc::vec;
use alloc::vec::Vec;
use core::mem;

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    Known,
    New,
    /// New, but there was no room to remember it.
    Full,
}

/// An exact set of a bounded number of numbers. It grows with their number, because the bound may
/// come from a file.
#[derive(Clone)]
pub(crate) struct Fallback {
    /// 0 is a free slot. A power of two of slots, of which at least half are free.
    slots: Vec<u64>,
    has_zero: bool,
    len: usize,
    capacity: usize,
}

impl Fallback {
    pub(crate) fn new(capacity: usize) -> Fallback {
        Fallback { slots: vec![0; slots(0)], has_zero: false, len: 0, capacity }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn bytes(&self) -> usize {
        self.slots.len() * size_of::<u64>()
    }

    pub(crate) fn clear(&mut self) {
        self.slots.fill(0);
        (self.has_zero, self.len) = (false, 0);
    }

    /// The slot with the number, or the free slot for it.
    #[inline]
    fn slot(&self, number: u64) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = first_slot(number, self.slots.len());
        // Half of the slots are free, so the loop ends.
        while self.slots[at] != 0 && self.slots[at] != number {
            at = (at + 1) & mask;
        }
        at
    }

    #[inline]
    pub(crate) fn contains(&self, number: u64) -> bool {
        if number == 0 { self.has_zero } else { self.slots[self.slot(number)] == number }
    }

    pub(crate) fn insert(&mut self, number: u64) -> Inserted {
        if self.contains(number) {
            return Inserted::Known;
        }
        if self.len == self.capacity {
            return Inserted::Full;
        }
        self.len += 1;
        if number == 0 {
            self.has_zero = true;
            return Inserted::New;
        }
        if self.len > self.slots.len() / 2 {
            let before = mem::replace(&mut self.slots, vec![0; slots(self.len)]);
            before.into_iter().filter(|number| *number != 0).for_each(|number| self.put(number));
        }
        self.put(number);
        Inserted::New
    }

    fn put(&mut self, number: u64) {
        let slot = self.slot(number);
        self.slots[slot] = number;
    }

    /// The numbers, in any order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let zero = self.has_zero.then_some(0);
        zero.into_iter().chain(self.slots.iter().copied().filter(|slot| *slot != 0))
    }
}

/// The number of slots for `capacity` numbers: a power of two. At most half are in use, so every
/// search reaches a free slot.
pub(crate) fn slots(capacity: usize) -> usize {
    capacity.saturating_mul(2).max(2).next_power_of_two()
}

/// The first slot to probe for a number. `slots` is a power of two and at least 2.
#[inline]
pub(crate) fn first_slot(number: u64, slots: usize) -> usize {
    // Fibonacci hashing: the high bits of the product with 2^64 / phi.
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - slots.trailing_zeros())) as usize
}
