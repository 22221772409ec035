//! Which PCs matter.

use super::blocks::sealed::{Blocks, Source};
use super::blocks::{BLOCK, Block, next_made};
use super::ranges::Ranges;
use crate::pc::Pc;

/// Admits PCs by their address: those of some ranges, or of all but some.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PcFilter {
    allow: Option<Ranges>,
    deny: Ranges,
}

impl PcFilter {
    /// Admits every PC.
    #[must_use]
    pub fn new() -> PcFilter {
        PcFilter::default()
    }

    /// Admits nothing outside of these ranges.
    #[must_use]
    pub fn allow(mut self, ranges: Ranges) -> PcFilter {
        self.allow = Some(ranges);
        self
    }

    /// Admits nothing in these ranges, whatever is allowed.
    #[must_use]
    pub fn deny(mut self, ranges: Ranges) -> PcFilter {
        self.deny = ranges;
        self
    }

    /// Whether a PC passes.
    #[inline]
    #[must_use]
    pub fn admits(&self, pc: Pc) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(pc.address()))
            && !self.deny.contains(pc.address())
    }

    /// The PCs that pass.
    pub fn of<S: Source>(&self, pcs: S) -> Filtered<'_, S> {
        Filtered { filter: self, pcs }
    }
}

/// The PCs that a [`PcFilter`] admits, made by [`PcFilter::of`].
#[derive(Clone, Copy, Debug)]
pub struct Filtered<'f, S> {
    filter: &'f PcFilter,
    pcs: S,
}

impl<'f, S: Source> Source for Filtered<'f, S> {
    type Blocks = FilteredBlocks<'f, S::Blocks>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        FilteredBlocks { filter: self.filter, pcs: self.pcs.blocks(), admitted: [0; BLOCK] }
    }
}

/// Blocks of what passes.
#[derive(Clone, Debug)]
pub struct FilteredBlocks<'f, B> {
    filter: &'f PcFilter,
    pcs: B,
    admitted: Block,
}

impl<B: Blocks> Blocks for FilteredBlocks<'_, B> {
    #[inline]
    fn next_block<'s>(&'s mut self, space: &'s mut Block) -> &'s [u64] {
        next_made(&mut self.pcs, space, &mut self.admitted, |pcs, admitted| {
            let mut count = 0;
            for &pc in pcs {
                admitted[count] = pc;
                count += usize::from(self.filter.admits(Pc::new(pc)));
            }
            count
        })
    }
}
