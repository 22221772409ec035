//! An exact map with one 64-bit word per 512 bytes of text, for text too large for a bit per byte.
//!
//! In a large kernel, compilers emit one instrumented block per ninety bytes or so, so most bits of
//! a flat map stay clear. Here each cell of 512 bytes has one word, which lists up to seven seen
//! offsets in fields of nine bits. A cell with more seen offsets is crowded: its word holds the
//! number of a line, which has one bit per byte.

use crate::flat::Bits;
use crate::ranges::CELL;
#[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
use crate::run::Run;
use alloc::vec;
use alloc::vec::Vec;

/// Number of offsets that a word can list.
const FIELDS: u32 = 7;
/// Number of bits of an offset within a cell.
pub(crate) const WIDTH: u32 = CELL.trailing_zeros();
/// The lowest bit of each field.
pub(crate) const LOW: u64 = spread(1);
/// The highest bit of each field.
pub(crate) const HIGH: u64 = LOW << (WIDTH - 1);
/// Marks a word that lists offsets, in the fields above this bit. In other words, these bits are
/// the number of a line, 0 for an empty cell.
pub(crate) const LISTS: u64 = 1;

/// The lowest bits of the first four fields.
pub(crate) const FOUR_FIELDS: u64 =
    1 << 1 | 1 << (1 + WIDTH) | 1 << (1 + 2 * WIDTH) | 1 << (1 + 3 * WIDTH);

const _: () = assert!(1 + FIELDS * WIDTH == u64::BITS);

/// Repeats a nine-bit number in all fields.
#[inline(always)]
const fn spread(within: u64) -> u64 {
    // In two steps, because vector units multiply 32-bit factors.
    let four = within * FOUR_FIELDS;
    four | four << (4 * WIDTH)
}

/// Whether a word does not list an offset, or lists nothing.
#[inline(always)]
const fn misses(word: u64, within: u64) -> bool {
    // The XOR makes a listed offset's field 0. The borrow of the subtraction shows whether there is
    // such a field, though not reliably which.
    let fields = word ^ (spread(within) | LISTS);
    let zeros = fields.wrapping_sub(LOW) & !fields & HIGH;
    zeros == 0 || fields & LISTS != 0
}

#[inline]
const fn field(word: u64, index: u32) -> u64 {
    word >> (1 + index * WIDTH) & (CELL - 1)
}

/// The number of the line in a word that does not list.
#[inline(always)]
const fn line(word: u64) -> usize {
    (word >> 1) as usize
}

/// The map for text of whole cells.
#[derive(Clone)]
pub(crate) struct Packed {
    /// Invariants: one word per cell; a word without [`LISTS`] is the number of one of `lines`. A
    /// word that lists repeats its first offset in the unused fields.
    words: Vec<u64>,
    /// The lines of crowded cells. All empty cells use the first line, which stays empty.
    lines: Vec<Bits>,
}

impl Packed {
    pub(crate) fn new(bytes: u64) -> Packed {
        Packed { words: vec![0; (bytes / CELL) as usize], lines: vec![Bits::default()] }
    }

    /// Bytes of the words, and bytes of the lines of crowded cells.
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

    /// Adds an offset and returns whether it was new. Allocates if a cell becomes crowded.
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

    /// Adds a cell's bits and returns the number of new ones.
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

    /// The words, one per cell.
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
    #[inline]
    pub(crate) fn words(&self) -> Run<'_> {
        Run::Plain(&self.words)
    }

    /// The words of the lines, eight per line.
    #[cfg(all(target_arch = "x86_64", target_pointer_width = "64", not(miri)))]
    #[inline]
    pub(crate) fn lines(&self) -> Run<'_> {
        Run::Plain(self.lines.as_flattened())
    }
}

/// The bits of the offsets listed in a word.
fn listed(word: u64) -> Bits {
    let mut bits = Bits::default();
    for index in 0..FIELDS {
        set(&mut bits, field(word, index));
    }
    bits
}

/// Sets the bit of an offset within a cell and returns whether it was clear.
fn set(bits: &mut Bits, within: u64) -> bool {
    let (word, bit) = (&mut bits[within as usize / 64], 1 << (within % 64));
    let new = *word & bit == 0;
    *word |= bit;
    new
}
