//! An exact map with one bit per byte of text.

use crate::run::Run;
use alloc::vec;
use alloc::vec::Vec;

/// One bit for each of `bytes` bytes of text.
#[derive(Clone)]
pub(crate) struct Bitmap {
    /// Invariant: one word per 64 bytes of text.
    words: Vec<u64>,
}

impl Bitmap {
    /// An empty map. `bytes` is a multiple of 64.
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

    #[inline]
    pub(crate) fn as_run(&self) -> Run<'_> {
        Run::Plain(&self.words)
    }
}
