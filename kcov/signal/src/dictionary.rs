//! What the kernel compares with, as bytes to put into inputs.

use super::comparisons::Operands;
use alloc::vec::Vec;

/// A bounded set of the numbers that the kernel has compared with, in sizes of 1 to 8 bytes.
///
/// ```
/// use kcov::Comparison;
/// use kcov::signal::{CmpFilter, Dictionary};
///
/// let record = Comparison::from_words([3, 0xcafe, 7, 0xffff_ffff_8100_0000]);
/// let mut dictionary = Dictionary::new(1000);
/// CmpFilter::new().skip_equal().of([record]).for_each(|operands| {
///     dictionary.add(operands);
/// });
/// let entries: Vec<_> = dictionary.entries().map(|entry| entry.as_bytes().to_vec()).collect();
/// assert_eq!(entries, [[0xfe, 0xca], [0xca, 0xfe]]);
/// ```
#[derive(Clone, Debug)]
pub struct Dictionary {
    /// Sorted; never grows beyond its first capacity.
    numbers: Vec<(u8, u64)>,
    capacity: usize,
    missed: u64,
}

impl Dictionary {
    /// An empty dictionary with room for `capacity` numbers. Allocates.
    #[must_use]
    pub fn new(capacity: usize) -> Dictionary {
        Dictionary { numbers: Vec::with_capacity(capacity), capacity, missed: 0 }
    }

    /// Adds the constant of a comparison, or both operands where none is constant. Whether
    /// something was added.
    pub fn add(&mut self, operands: Operands) -> bool {
        let (first, second) = operands.unsigned();
        let added = self.add_number(operands.size() as u8, first);
        let also = !operands.is_const() && self.add_number(operands.size() as u8, second);
        added || also
    }

    fn add_number(&mut self, size: u8, number: u64) -> bool {
        let Err(place) = self.numbers.binary_search(&(size, number)) else {
            return false;
        };
        if self.numbers.len() == self.capacity {
            self.missed += 1;
            return false;
        }
        self.numbers.insert(place, (size, number));
        true
    }

    /// The numbers as bytes, in both orders where they differ: the least significant byte first,
    /// then the other way round. By size and number.
    pub fn entries(&self) -> impl Iterator<Item = Entry> + '_ {
        self.numbers.iter().flat_map(|&(size, number)| {
            let little = Entry { bytes: number.to_le_bytes(), size };
            let shift = 64 - 8 * u32::from(size);
            let big = Entry { bytes: (number << shift).to_be_bytes(), size };
            [Some(little), Some(big).filter(|big| *big != little)].into_iter().flatten()
        })
    }

    /// Number of different numbers of a size.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there is no number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// How often a number was not added because the dictionary was full.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Bytes to put into an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    /// Zeros beyond the size.
    bytes: [u8; 8],
    size: u8,
}

impl Entry {
    /// The bytes: 1, 2, 4 or 8 of them.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.size)]
    }
}
