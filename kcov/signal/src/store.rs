//! The two forms of a map, and their common operations.

use crate::flat::{Bits, Flat};
use crate::known::Memory;
use crate::packed::Packed;
use crate::ranges::CELL;

/// Maximum size in bytes of text with one bit per byte: 3 MiB of bits.
pub(crate) const FLAT_BYTES: u64 = 24 << 20;

/// The memory of a map: the offsets that were seen.
#[derive(Clone)]
pub(crate) enum Store {
    Flat(Flat),
    Packed(Packed),
}

impl Store {
    /// A store for `bytes` bytes of text, a multiple of the cell size.
    pub(crate) fn new(bytes: u64) -> Store {
        if bytes <= FLAT_BYTES {
            Store::Flat(Flat::new(bytes))
        } else {
            Store::Packed(Packed::new(bytes))
        }
    }

    /// Bytes of constant size, and bytes for crowded cells.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        match self {
            Store::Flat(flat) => (flat.bytes(), 0),
            Store::Packed(packed) => packed.bytes(),
        }
    }

    pub(crate) fn clear(&mut self) {
        match self {
            Store::Flat(flat) => flat.clear(),
            Store::Packed(packed) => packed.clear(),
        }
    }

    #[inline]
    pub(crate) fn memory(&self) -> Memory<'_> {
        match self {
            Store::Flat(flat) => Memory::Bits(flat.as_run()),
            Store::Packed(packed) => Memory::Packed(packed),
        }
    }

    /// Adds an offset and returns whether it was new.
    #[inline]
    pub(crate) fn insert(&mut self, offset: u32) -> bool {
        match self {
            Store::Flat(flat) => flat.insert(offset),
            Store::Packed(packed) => packed.insert(offset),
        }
    }

    /// The bits for the 512 bytes of text from `cell * 512` on.
    pub(crate) fn cell(&self, cell: usize) -> Bits {
        match self {
            Store::Flat(flat) => flat.cell(cell),
            Store::Packed(packed) => packed.cell(cell),
        }
    }

    /// Adds a cell's bits and returns the number of new ones.
    pub(crate) fn merge_cell(&mut self, cell: usize, bits: &Bits) -> usize {
        match self {
            Store::Flat(flat) => flat.merge_cell(cell, bits),
            Store::Packed(packed) => packed.merge_cell(cell, bits),
        }
    }
}

/// Number of cells in `bytes` bytes of text.
pub(crate) fn cells(bytes: u64) -> usize {
    (bytes / CELL) as usize
}
