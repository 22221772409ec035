//! The signals of a map, in ascending order.

use crate::bitmap::{Bitmap, Bits, CELL_WORDS};
use crate::ranges::{CELL, Index};
use crate::shared::SharedCells;
use alloc::vec::Vec;
use core::fmt;
use core::iter::FusedIterator;
use core::iter::Peekable;

/// Source of the cells' bits.
#[derive(Clone, Copy)]
pub(crate) enum Cells<'m> {
    Map(&'m Bitmap),
    Shared(SharedCells<'m>),
}

/// Iterator over the signals of a map, in ascending order.
#[derive(Clone)]
pub struct MapIter<'m> {
    index: &'m Index,
    cells: Cells<'m>,
    /// The next cell.
    cell: usize,
    /// Remaining bits of the current cell.
    bits: Bits,
    in_ranges: Option<u64>,
    outside: Peekable<alloc::vec::IntoIter<u64>>,
}

impl<'m> MapIter<'m> {
    pub(crate) fn new(
        index: &'m Index,
        cells: Cells<'m>,
        outside: impl Iterator<Item = u64>,
    ) -> MapIter<'m> {
        let mut outside: Vec<u64> = outside.collect();
        outside.sort_unstable();
        // While a shared map was cleared, a signal may have come into two places.
        outside.dedup();
        let outside = outside.into_iter().peekable();
        let mut iter =
            MapIter { index, cells, cell: 0, bits: Bits::default(), in_ranges: None, outside };
        iter.in_ranges = iter.next_in_ranges();
        iter
    }

    fn next_in_ranges(&mut self) -> Option<u64> {
        loop {
            for word in 0..CELL_WORDS {
                let left = &mut self.bits[word];
                if *left != 0 {
                    let within = word as u64 * 64 + u64::from(left.trailing_zeros());
                    *left &= *left - 1;
                    return Some(self.index.address((self.cell as u64 - 1) * CELL + within));
                }
            }
            if self.cell == self.index.cells() {
                return None;
            }
            self.bits = match self.cells {
                Cells::Map(bitmap) => bitmap.cell(self.cell),
                Cells::Shared(shared) => shared.cell(self.cell),
            };
            self.cell += 1;
        }
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
