//! A 64-bit word for each 512 bytes of text, exact all the same: for text that is too large for a bit
//! a byte.
//!
//! Compilers put an instrumented block into some ninety bytes of a large kernel, so most bits of a
//! flat map are never set. Here the 512 bytes of a cell have one word, which lists the offsets that
//! were seen, nine bits each, up to seven. A cell that has more is crowded: its word then has the
//! number of a line with a bit for each byte.

use crate::flat::Bits;
use crate::ranges::CELL;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use crate::run::Run;
use alloc::vec;
use alloc::vec::Vec;

/// Offsets that a word can list.
const FIELDS: u32 = 7;
/// Bits of an offset within a cell.
pub(crate) const WIDTH: u32 = CELL.trailing_zeros();
/// The lowest bit of each field.
pub(crate) const LOW: u64 = spread(1);
/// The highest bit of each field.
pub(crate) const HIGH: u64 = LOW << (WIDTH - 1);
/// Marks a word that lists offsets, in the fields above it. Without it the rest of the word is the
/// number of a line, 0 for an empty cell.
pub(crate) const LISTS: u64 = 1;

/// The lowest bits of the first four fields.
pub(crate) const FOUR_FIELDS: u64 =
    1 << 1 | 1 << (1 + WIDTH) | 1 << (1 + 2 * WIDTH) | 1 << (1 + 3 * WIDTH);

const _: () = assert!(1 + FIELDS * WIDTH == u64::BITS);

/// A number of nine bits in all fields.
#[inline(always)]
const fn spread(within: u64) -> u64 {
    // In two steps, because 32-bit factors are what vector units multiply.
    let four = within * FOUR_FIELDS;
    four | four << (4 * WIDTH)
}

/// Whether a word does not list an offset, or lists none at all.
#[inline(always)]
const fn misses(word: u64, within: u64) -> bool {
    // A listed offset is a field that the exclusive or makes 0; the borrow of the subtraction
    // shows whether there is such a field, though not always which one it is.
    let fields = word ^ (spread(within) | LISTS);
    let zeros = fields.wrapping_sub(LOW) & !fields & HIGH;
    zeros == 0 || fields & LISTS != 0
}

#[inline]
const fn field(word: u64, index: u32) -> u64 {
    word >> (1 + index * WIDTH) & (CELL - 1)
}

/// The number of the line that a word names which does not list.
#[inline(always)]
const fn line(word: u64) -> usize {
    (word >> 1) as usize
}

/// The map of text of whole cells.
#[derive(Clone, Debug)]
pub(crate) struct Packed {
    /// Invariants: a word for each cell; one without [`LISTS`] names one of `lines`. A word
    /// that lists repeats its first offset in the fields that are free.
    words: Vec<u64>,
    /// The lines of crowded cells. The first one is of all empty cells and stays empty.
    lines: Vec<Bits>,
}

impl Packed {
    pub(crate) fn new(bytes: u64) -> Packed {
        Packed { words: vec![0; (bytes / CELL) as usize], lines: vec![Bits::default()] }
    }

    /// Bytes of the words, and of the lines of crowded cells.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (size_of_val(self.words.as_slice()), size_of_val(self.lines.as_slice()))
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
        self.lines.truncate(1);
    }

    #[inline(always)]
    pub(crate) fn contains(&self, offset: u32) -> bool {
        let word = self.words[offset as usize / CELL as usize];
        if word & LISTS != 0 {
            return !misses(word, u64::from(offset) % CELL);
        }
        let line = &self.lines[line(word)];
        line[offset as usize % CELL as usize / 64] >> (offset % 64) & 1 != 0
    }

    /// Whether it was new. Allocates where a cell becomes crowded.
    pub(crate) fn insert(&mut self, offset: u32) -> bool {
        let word = &mut self.words[offset as usize / CELL as usize];
        let within = u64::from(offset) % CELL;
        if *word == 0 {
            *word = spread(within) | LISTS;
            return true;
        }
        if *word & LISTS == 0 {
            return set(&mut self.lines[line(*word)], within);
        }
        if !misses(*word, within) {
            return false;
        }
        let first = field(*word, 0);
        match (1..FIELDS).find(|&index| field(*word, index) == first) {
            Some(free) => *word ^= (first ^ within) << (1 + free * WIDTH),
            None => {
                let mut line = listed(*word);
                set(&mut line, within);
                *word = (self.lines.len() as u64) << 1;
                self.lines.push(line);
            }
        }
        true
    }

    pub(crate) fn cell(&self, cell: usize) -> Bits {
        let word = self.words[cell];
        if word & LISTS != 0 { listed(word) } else { self.lines[line(word)] }
    }

    /// Adds a cell's bits; the number of new ones.
    pub(crate) fn merge_cell(&mut self, cell: usize, bits: &Bits) -> usize {
        let mut new = 0;
        for (index, bits) in bits.iter().enumerate() {
            let mut left = *bits;
            while left != 0 {
                let within = index * 64 + left.trailing_zeros() as usize;
                new += usize::from(self.insert((cell * CELL as usize + within) as u32));
                left &= left - 1;
            }
        }
        new
    }

    /// The words, one for each cell.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(crate) fn words(&self) -> Run<'_> {
        Run::Plain(&self.words)
    }

    /// The words of the lines, eight for each.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(crate) fn lines(&self) -> Run<'_> {
        Run::Plain(self.lines.as_flattened())
    }
}

/// The bits of the offsets that a word lists.
fn listed(word: u64) -> Bits {
    let mut bits = Bits::default();
    for index in 0..FIELDS {
        set(&mut bits, field(word, index));
    }
    bits
}

/// Sets the bit of an offset within a cell; whether it was not set.
fn set(bits: &mut Bits, within: u64) -> bool {
    let (word, bit) = (&mut bits[within as usize / 64], 1 << (within % 64));
    let new = *word & bit == 0;
    *word |= bit;
    new
}
