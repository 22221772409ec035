//! Numbers that the kernel compared with, as bytes for inputs.

use crate::comparisons::Operands;
use crate::replacements::Token;
use alloc::vec::Vec;
use core::fmt;

/// A bounded set of the numbers that the kernel has compared with.
///
/// Each number has the size of its comparison: 1, 2, 4 or 8 bytes. If a mutator knows which bytes
/// of the input the kernel saw, [`Operands::replacements`] serves it better.
///
/// ```
/// use kcov::Comparison;
/// use kcov_signal::{CmpFilter, Dictionary};
///
/// let record = Comparison::from_words([3, 0xcafe, 7, 0xffff_ffff_8100_0000]);
/// let mut dictionary = Dictionary::new(1000);
/// CmpFilter::new().skip_equal().of([record]).for_each(|operands| {
///     dictionary.add(operands);
/// });
/// let tokens: Vec<_> = dictionary.tokens().map(|token| token.as_bytes().to_vec()).collect();
/// assert_eq!(tokens, [[0xfe, 0xca], [0xca, 0xfe]]);
/// ```
pub struct Dictionary {
    /// Sorted.
    numbers: Vec<(u8, u64)>,
    capacity: usize,
    missed: u64,
}

impl Dictionary {
    /// Makes an empty dictionary that holds at most `capacity` numbers.
    #[must_use]
    pub fn new(capacity: usize) -> Dictionary {
        Dictionary { numbers: Vec::new(), capacity, missed: 0 }
    }

    /// Adds the constant of a comparison, or both operands if neither is constant. Returns whether
    /// it added anything. Allocates.
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

    /// The numbers as bytes, ordered by size and then by number. Each comes with the least
    /// significant byte first, then in the other byte order if that differs.
    pub fn tokens(&self) -> impl Iterator<Item = Token> + '_ {
        self.numbers.iter().flat_map(|&(size, number)| {
            let (little, big) =
                (Token::little(number, size.into()), Token::big(number, size.into()));
            [Some(little), (big != little).then_some(big)].into_iter().flatten()
        })
    }

    /// The number of entries. One number in two sizes counts twice.
    #[must_use]
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether the dictionary is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// How often a number did not fit.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

/// Shows how many numbers there are.
impl fmt::Debug for Dictionary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dictionary")
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("missed", &self.missed)
            .finish_non_exhaustive()
    }
}
