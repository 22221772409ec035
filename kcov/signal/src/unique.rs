//! The set of one execution.

use crate::merge::{Inserted, Merged, first_slot, slots};
use crate::signals::{Signals, for_each};
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

/// The distinct signals of one execution, in order of first occurrence.
///
/// [`clear`](Self::clear) takes constant time, however many signals there were. Only
/// [`new`](Self::new) allocates.
///
/// ```
/// # use kcov_signal::UniqueSet;
/// let mut set = UniqueSet::new(1024);
/// set.collect(&[7, 3, 7]);
/// assert_eq!(set.as_slice(), [7, 3]);
/// assert_eq!(set.sort(), [3, 7]);
/// set.clear();
/// assert!(set.is_empty());
/// ```
pub struct UniqueSet {
    /// An entry is valid if it has the current stamp.
    slots: Vec<Slot>,
    /// The stamp of valid slots.
    stamp: u64,
    /// Signals in order of first occurrence. Never grows beyond its initial capacity.
    order: Vec<u64>,
    capacity: usize,
}

#[derive(Clone, Copy, Default)]
struct Slot {
    signal: u64,
    stamp: u64,
}

impl UniqueSet {
    /// Makes an empty set with room for `capacity` signals. Allocates all of it: 40 to 72 bytes for
    /// each.
    ///
    /// # Panics
    ///
    /// If that is more than `isize::MAX` bytes.
    #[must_use]
    pub fn new(capacity: usize) -> UniqueSet {
        assert!(capacity <= isize::MAX as usize / 128, "no set has room for {capacity} signals");
        UniqueSet {
            slots: vec![Slot::default(); slots(capacity)],
            stamp: 1,
            order: Vec::with_capacity(capacity),
            capacity,
        }
    }

    /// Forgets all signals, for the next execution.
    #[inline]
    pub fn clear(&mut self) {
        // 64 bits do not overflow.
        self.stamp += 1;
        self.order.clear();
    }

    /// Adds signals. Counts signals that do not fit as [`unrecorded`](Merged::unrecorded).
    pub fn collect(&mut self, signals: impl Signals) -> Merged {
        let mut merged = Merged::default();
        for_each(signals, |signal| merged.add(self.add(signal)));
        merged
    }

    /// The slot with the signal, or the free slot for it, and whether the signal was found.
    #[inline]
    fn slot(&self, signal: u64) -> (usize, bool) {
        let mask = self.slots.len() - 1;
        let mut at = first_slot(signal, self.slots.len());
        // Half of the slots are free, so the loop ends.
        while self.slots[at].stamp == self.stamp {
            if self.slots[at].signal == signal {
                return (at, true);
            }
            at = (at + 1) & mask;
        }
        (at, false)
    }

    #[inline]
    fn add(&mut self, signal: u64) -> Inserted {
        let (at, found) = self.slot(signal);
        if found {
            return Inserted::Known;
        }
        if self.order.len() == self.capacity {
            return Inserted::Full;
        }
        self.slots[at] = Slot { signal, stamp: self.stamp };
        self.order.push(signal);
        Inserted::New
    }

    /// Whether a signal is in the set.
    #[must_use]
    pub fn contains(&self, signal: u64) -> bool {
        self.slot(signal).1
    }

    /// The signals in order of first occurrence, or as [`sort`](Self::sort) left them.
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.order
    }

    /// Sorts the signals. Signals that are added later come after these.
    pub fn sort(&mut self) -> &[u64] {
        self.order.sort_unstable();
        &self.order
    }

    /// The number of signals in the set.
    #[must_use]
    pub fn len(&self) -> usize {
        self.order.len()
    }

    /// Whether the set is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.order.is_empty()
    }
}

/// Shows numbers, not the signals: there may be millions.
impl fmt::Debug for UniqueSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UniqueSet")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}
