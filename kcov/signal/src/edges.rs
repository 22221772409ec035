//! Edges: which block came after which.

use super::blocks::sealed::{Blocks, Source};
use super::blocks::{BLOCK, Block, next_made};
use super::filter::PcFilter;
use crate::pc::Pc;
use core::mem;

/// The bits of a PC that an edge takes from its predecessor: the address within a page, which is
/// the same wherever a module was loaded.
const MASK: u64 = 0xfff;

/// The signal of the step from one PC to the next, as syzkaller's executor makes it: `pc` with its
/// low twelve bits changed by a hash of the low twelve bits of `previous`.
///
/// `pc ^ (hash(previous & 0xfff) & 0xfff)`, where `hash` is Thomas Wang's integer hash in 32 bits:
/// `a = (a ^ 61) ^ (a >> 16); a += a << 3; a ^= a >> 4; a *= 0x27d4eb2d; a ^= a >> 15`. The first
/// PC of a trace has 0 before it.
///
/// The result lies in the page of `pc`, so a map of the text keeps edges as well as PCs, if its
/// ranges are whole pages.
#[inline]
#[must_use]
pub const fn edge(previous: Pc, pc: Pc) -> u64 {
    step(previous.address(), pc.address())
}

#[inline(always)]
const fn step(previous: u64, pc: u64) -> u64 {
    let mut hash = (previous & MASK) as u32;
    hash = (hash ^ 61) ^ (hash >> 16);
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 4;
    hash = hash.wrapping_mul(0x27d4_eb2d);
    hash ^= hash >> 15;
    pc ^ (hash as u64 & MASK)
}

/// The [`edge`]s of a sequence of PCs.
///
/// ```
/// # use kcov::signal::{Edges, NoveltyMap, Ranges};
/// # let mut map = NoveltyMap::new(Ranges::single(0x1000..0x3000)?);
/// map.merge(Edges::new(&[0x1010, 0x2020, 0x1010]));
/// assert!(map.has_new(Edges::new(&[0x2020, 0x1010])), "the edge from the start");
/// # Ok::<(), kcov::signal::RangesError>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Edges<'f, S> {
    pcs: S,
    filter: Option<&'f PcFilter>,
}

impl<S: Source> Edges<'_, S> {
    /// All edges.
    pub fn new(pcs: S) -> Self {
        Edges { pcs, filter: None }
    }
}

impl<'f, S: Source> Edges<'f, S> {
    /// The edges into, within and out of what a filter admits, as syzkaller's executor has them:
    /// one is left out if neither of its PCs is admitted.
    pub fn filtered(pcs: S, filter: &'f PcFilter) -> Self {
        Edges { pcs, filter: Some(filter) }
    }
}

impl<'f, S: Source> Source for Edges<'f, S> {
    type Blocks = EdgeBlocks<'f, S::Blocks>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        let (pcs, filter) = (self.pcs.blocks(), self.filter);
        EdgeBlocks { pcs, filter, previous: 0, admitted: true, edges: [0; BLOCK] }
    }
}

/// Blocks of edges.
#[derive(Clone, Debug)]
pub struct EdgeBlocks<'f, B> {
    pcs: B,
    filter: Option<&'f PcFilter>,
    previous: u64,
    admitted: bool,
    edges: Block,
}

impl<B: Blocks> Blocks for EdgeBlocks<'_, B> {
    #[inline]
    fn next_block<'s>(&'s mut self, space: &'s mut Block) -> &'s [u64] {
        let EdgeBlocks { pcs, filter, previous, admitted, edges } = self;
        next_made(pcs, space, edges, |pcs, edges| {
            let mut count = 0;
            match filter {
                None => {
                    edges[0] = step(*previous, pcs[0]);
                    let steps = pcs.iter().zip(&pcs[1..]);
                    for (edge, (&previous, &pc)) in edges[1..].iter_mut().zip(steps) {
                        *edge = step(previous, pc);
                    }
                    count = pcs.len();
                }
                Some(filter) => {
                    let mut previous = *previous;
                    for &pc in pcs {
                        let before = mem::replace(admitted, filter.admits(Pc::new(pc)));
                        edges[count] = step(previous, pc);
                        count += usize::from(before || *admitted);
                        previous = pc;
                    }
                }
            }
            *previous = pcs[pcs.len() - 1];
            count
        })
    }
}
