//! The signals of a map, in ascending order.

use crate::ranges::{Index, WORD};
use alloc::vec::Vec;
use core::fmt;
use core::iter::{FusedIterator, Peekable};
use core::sync::atomic::{AtomicU64, Ordering};

/// Iterator over the signals of a map, in ascending order.
#[derive(Clone)]
pub struct MapIter<'m> {
    index: &'m Index,
    bits: &'m [AtomicU64],
    /// The next word of `bits`.
    word: usize,
    /// Remaining bits of the word before.
    left: u64,
    in_ranges: Option<u64>,
    outside: Peekable<alloc::vec::IntoIter<u64>>,
}

impl<'m> MapIter<'m> {
    pub(crate) fn new(
        index: &'m Index,
        bits: &'m [AtomicU64],
        outside: impl Iterator<Item = u64>,
    ) -> MapIter<'m> {
        let mut outside: Vec<u64> = outside.collect();
        outside.sort_unstable();
        // While the map was cleared, a signal may have come into two places.
        outside.dedup();
        let outside = outside.into_iter().peekable();
        let mut iter = MapIter { index, bits, word: 0, left: 0, in_ranges: None, outside };
        iter.in_ranges = iter.next_in_ranges();
        iter
    }

    fn next_in_ranges(&mut self) -> Option<u64> {
        while self.left == 0 {
            if self.word == self.bits.len() {
                return None;
            }
            self.left = self.bits[self.word].load(Ordering::Relaxed);
            self.word += 1;
        }
        let bit = u64::from(self.left.trailing_zeros());
        self.left &= self.left - 1;
        Some(self.index.address((self.word as u64 - 1) * WORD + bit))
    }
}

impl Iterator for MapIter<'_> {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        match (self.in_ranges, self.outside.peek()) {
            (Some(inside), Some(&outside)) if outside < inside => self.outside.next(),
            (None, _) => self.outside.next(),
            (inside, _) => {
                self.in_ranges = self.next_in_ranges();
                inside
            }
        }
    }
}

impl FusedIterator for MapIter<'_> {}

/// Shows the next signal in the ranges and how many are left outside.
impl fmt::Debug for MapIter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapIter")
            .field("in_ranges", &self.in_ranges)
            .field("outside", &self.outside.len())
            .finish_non_exhaustive()
    }
}
