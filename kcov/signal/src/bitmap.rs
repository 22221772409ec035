//! An exact map with one bit per byte of text.

use crate::ranges::CELL;
use crate::run::Run;
use alloc::vec;
use alloc::vec::Vec;

/// Number of 64-bit words for a cell's bits.
pub(crate) const CELL_WORDS: usize = CELL as usize / 64;

/// The bits of one cell, one per byte of text.
pub(crate) type Bits = [u64; CELL_WORDS];

/// One bit for each of `bytes` bytes of text.
#[derive(Clone)]
pub(crate) struct Bitmap {
    /// Invariant: one word per 64 bytes of text.
    words: Vec<u64>,
}

impl Bitmap {
    /// An empty map. `bytes` is a multiple of the cell size.
    pub(crate) fn new(bytes: u64) -> Bitmap {
        Bitmap { words: vec![0; (bytes / 64) as usize] }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.words.as_slice())
    }

    pub(crate) fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Adds an offset and returns whether it was new.
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

    /// Adds a cell's bits and returns the number of new ones.
    pub(crate) fn merge_cell(&mut self, cell: usize, bits: &Bits) -> usize {
        let mut new = 0;
        for (word, bits) in self.words[cell * CELL_WORDS..][..CELL_WORDS].iter_mut().zip(bits) {
            new += (bits & !*word).count_ones() as usize;
            *word |= bits;
        }
        new
    }

    #[inline]
    pub(crate) fn as_run(&self) -> Run<'_> {
        Run::Plain(&self.words)
    }
}
