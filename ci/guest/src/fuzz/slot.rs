//! The running input, in memory that the host can find after the guest's death.
//!
//! The host sees the guest's physical memory, so the slot consists of aligned blocks that begin
//! with a random mark. It holds two inputs, and a new one replaces the older: if the guest dies while
//! it is being stored, the other is complete.

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::ptr::null_mut;
use std::{io, slice};

/// The size and alignment of a block, in bytes: a page, or a part of one.
pub const BLOCK: usize = 4096;
/// The bytes of an input in a block.
const DATA: usize = BLOCK - 40;
/// The blocks of one input.
const BLOCKS: usize = 64;
/// The greatest length that is stored, in bytes. Of longer inputs the beginning is.
pub const MOST: usize = BLOCKS * DATA;

/// A part of an input.
#[derive(Clone, Debug)]
#[repr(C)]
struct Block {
    mark: [u8; 16],
    /// The number of the input; 0 for none.
    generation: [u8; 8],
    index: [u8; 4],
    /// The length of the input.
    length: [u8; 4],
    /// What the input was made from; 0 if unknown.
    parent: [u8; 8],
    data: [u8; DATA],
}

const _: () = assert!(size_of::<Block>() == BLOCK && align_of::<Block>() == 1);

/// The fuzzer's end.
#[derive(Debug)]
pub struct Slot {
    mark: [u8; 16],
    generation: u64,
    blocks: &'static mut [Block],
}

impl Slot {
    /// Makes a slot with a mark that occurs nowhere else. Its memory is never freed. Fails if there is
    /// none.
    pub fn new(mark: [u8; 16]) -> io::Result<Slot> {
        let bytes = 2 * BLOCKS * BLOCK;
        let (rights, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
        // SAFETY: the kernel chooses the place, so no other memory is replaced.
        let start = unsafe { mmap_anonymous(null_mut(), bytes, rights, flags) }?;
        // SAFETY: the mapping has this size, is aligned to a page, and is never unmapped. Nothing
        // else refers to it. All bytes are valid, and a block has the alignment of a byte.
        let blocks = unsafe { slice::from_raw_parts_mut(start.cast::<Block>(), 2 * BLOCKS) };
        Ok(Slot { mark, generation: 0, blocks })
    }

    /// Stores an input, and the name of the input that it was made from.
    pub fn store(&mut self, input: &[u8], parent: Option<u64>) {
        self.generation += 1;
        let half = if self.generation % 2 == 0 { 0 } else { BLOCKS };
        let input = &input[..input.len().min(MOST)];
        let length = (input.len() as u32).to_le_bytes();
        let parent = parent.unwrap_or(0).to_le_bytes();
        // An empty input has one block.
        let parts = input.chunks(DATA).chain(input.is_empty().then_some(input));
        for ((index, part), block) in (0_u32..).zip(parts).zip(&mut self.blocks[half..]) {
            // Not valid until all of it is there.
            block.generation = [0; 8];
            black_box(&mut *block);
            block.data[..part.len()].copy_from_slice(part);
            (block.mark, block.index) = (self.mark, index.to_le_bytes());
            (block.length, block.parent) = (length, parent);
            black_box(&mut *block);
            block.generation = self.generation.to_le_bytes();
        }
        // The host reads the memory, so every store must happen.
        black_box(&mut *self.blocks);
    }
}

/// An input that a guest ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ran {
    /// The input.
    pub input: Vec<u8>,
    /// The [`name`](super::name) of the input that it was made from, if the fuzzer told it.
    pub parent: Option<u64>,
}

/// The host's end: finds the last complete input in a guest's memory.
#[derive(Debug)]
pub struct Search {
    mark: [u8; 16],
    /// By generation.
    found: BTreeMap<u64, Found>,
}

/// The blocks of an input.
#[derive(Debug)]
struct Found {
    length: usize,
    parent: u64,
    /// Data by index.
    parts: BTreeMap<usize, Vec<u8>>,
}

impl Search {
    /// Searches for blocks with this mark.
    #[must_use]
    pub fn new(mark: [u8; 16]) -> Search {
        Search { mark, found: BTreeMap::new() }
    }

    /// Takes memory that begins at a multiple of [`BLOCK`].
    pub fn look(&mut self, memory: &[u8]) {
        for block in memory.chunks_exact(BLOCK).filter(|block| block.starts_with(&self.mark)) {
            let number = |at: usize, bytes: usize| {
                block[at..at + bytes].iter().rev().fold(0_u64, |all, byte| all << 8 | *byte as u64)
            };
            let (generation, index, length) = (number(16, 8), number(24, 4), number(28, 4));
            if generation > 0 && index < BLOCKS as u64 && length <= MOST as u64 {
                let found = self.found.entry(generation).or_insert_with(|| Found {
                    length: length as usize,
                    parent: number(32, 8),
                    parts: BTreeMap::new(),
                });
                found.parts.insert(index as usize, block[BLOCK - DATA..].to_vec());
            }
        }
    }

    /// The last complete input.
    #[must_use]
    pub fn last(&self) -> Option<Ran> {
        let complete = |Found { length, parent, parts }: &Found| {
            let blocks = length.div_ceil(DATA).max(1);
            let parts: Option<Vec<_>> = (0..blocks).map(|index| parts.get(&index)).collect();
            let mut input = parts?.into_iter().flatten().copied().collect::<Vec<_>>();
            input.truncate(*length);
            Some(Ran { input, parent: (*parent != 0).then_some(*parent) })
        };
        self.found.values().rev().find_map(complete)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: [u8; 16] = *b"a mark of a test";

    fn memory(slot: &Slot) -> Vec<u8> {
        let mut all = Vec::new();
        // In no order, as pages are in physical memory.
        for block in slot.blocks.iter().rev() {
            let Block { mark, generation, index, length, parent, data } = block;
            all.extend([&mark[..], generation, index, length, parent, data].concat());
        }
        all
    }

    fn search(memory: &[u8]) -> Option<Vec<u8>> {
        let mut search = Search::new(OURS);
        search.look(memory);
        search.last().map(|ran| ran.input)
    }

    #[test]
    fn the_last_input_is_found() {
        let mut slot = Slot::new(OURS).unwrap();
        assert_eq!(search(&memory(&slot)), None);
        let long: Vec<u8> = (0..3 * DATA + 7).map(|at| at as u8).collect();
        for input in [&b"first"[..], &long, b"", b"fourth", &long[..DATA], b"last"] {
            slot.store(input, None);
            assert_eq!(search(&memory(&slot)).as_deref(), Some(input));
        }
        slot.store(&vec![7; MOST + 1], None);
        assert_eq!(search(&memory(&slot)), Some(vec![7; MOST]));
    }

    #[test]
    fn what_it_was_made_from_is_found() {
        let mut slot = Slot::new(OURS).unwrap();
        for parent in [None, Some(0x0102_0304_0506_0708), None] {
            slot.store(&[7; DATA + 1], parent);
            let mut search = Search::new(OURS);
            search.look(&memory(&slot));
            assert_eq!(search.last(), Some(Ran { input: vec![7; DATA + 1], parent }));
        }
    }

    #[test]
    fn an_incomplete_input_gives_the_one_before() {
        let mut slot = Slot::new(OURS).unwrap();
        slot.store(b"before", None);
        slot.store(&[7; 3 * DATA], None);
        slot.blocks[1].generation = [0; 8];
        assert_eq!(search(&memory(&slot)).as_deref(), Some(&b"before"[..]));
    }

    #[test]
    fn other_memory_is_nothing() {
        assert_eq!(search(&[]), None);
        assert_eq!(search(&[0xff; 3 * BLOCK]), None);
        let mut wrong = [0xff; BLOCK];
        wrong[..16].copy_from_slice(&OURS);
        assert_eq!(search(&wrong), None);
        let mut slot = Slot::new([1; 16]).unwrap();
        slot.store(b"another's", None);
        assert_eq!(search(&memory(&slot)), None);
    }
}
