//! One bit for each byte of text: exact whatever the addresses are.

use super::ranges::CELL;
use alloc::vec;
use alloc::vec::Vec;

/// 64-bit words of a cell's bits.
pub(crate) const CELL_WORDS: usize = CELL as usize / 64;

/// The bits of one cell, one for each byte of its text.
pub(crate) type Bits = [u64; CELL_WORDS];

/// Bits for `bytes` bytes of text.
#[derive(Clone, Debug)]
pub(crate) struct Flat {
    /// Invariant: a word for each 64 bytes of text.
    words: Vec<u64>,
}

impl Flat {
    /// Nothing seen, in whole cells of text.
    pub(crate) fn new(bytes: u64) -> Flat {
        Flat { words: vec![0; (bytes / 64) as usize] }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    #[inline]
    pub(crate) fn contains(&self, offset: u32) -> bool {
        self.words[offset as usize / 64] >> (offset % 64) & 1 != 0
    }

    /// Whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, offset: u32) -> bool {
        let (word, bit) = (&mut self.words[offset as usize / 64], 1 << (offset % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    pub(crate) fn cell(&self, cell: usize) -> Bits {
        self.words[cell * CELL_WORDS..][..CELL_WORDS].try_into().expect("a cell's words")
    }

    /// Adds a cell's bits; the number of new ones.
    pub(crate) fn merge_cell(&mut self, cell: usize, bits: &Bits) -> usize {
        let mut new = 0;
        for (word, bits) in self.words[cell * CELL_WORDS..][..CELL_WORDS].iter_mut().zip(bits) {
            new += (bits & !*word).count_ones() as usize;
            *word |= bits;
        }
        new
    }

    /// [`contains`](Self::contains) without the check of the bound.
    ///
    /// # Safety
    ///
    /// The offset is less than the bytes of text.
    #[inline(always)]
    pub(crate) unsafe fn contains_at(&self, offset: u32) -> bool {
        // SAFETY: there is a word for each 64 bytes of text, and the offset is within it, by the
        // caller's duty.
        let word = unsafe { *self.words.get_unchecked(offset as usize / 64) };
        word >> (offset % 64) & 1 != 0
    }
}
