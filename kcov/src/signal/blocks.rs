//! Signals by the block: how everything in this module reads.
//!
//! A block is copied once from where the signals lie to the stack; what is found out about the copy
//! cannot be changed by whoever writes to the buffer meanwhile.

use crate::mode::TracePc;
use crate::pc::Pc;
use crate::trace::{Iter, Trace};
use alloc::vec::Vec;

/// Signals in a block.
pub(crate) const BLOCK: usize = 128;

/// Room for a block.
pub(crate) type Block = [u64; BLOCK];

pub(crate) mod sealed {
    /// Gives signals a block at a time.
    pub trait Blocks {
        /// The next signals, at most a block of them; none at the end.
        #[doc(hidden)]
        fn next_block<'s>(&'s mut self, space: &'s mut super::Block) -> &'s [u64];
    }

    pub trait Source {
        #[doc(hidden)]
        type Blocks: Blocks;

        #[doc(hidden)]
        fn blocks(self) -> Self::Blocks;
    }
}

use sealed::{Blocks, Source};

/// A sequence of signals: numbers of which a map remembers which it has seen.
///
/// The plain signal is the PC: a [`Trace`] of [`TracePc`], or a slice of [`Pc`]s or of words that
/// the caller owns. [`Edges`](super::Edges) and [`Filtered`](super::Filtered) make other signals of
/// these. Sealed.
pub trait Signals: Source {}

impl<T: Source> Signals for T {}

impl<'b> Source for Trace<'b, TracePc> {
    type Blocks = Iter<'b, TracePc>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        self.iter()
    }
}

impl<'b> Source for &Trace<'b, TracePc> {
    type Blocks = Iter<'b, TracePc>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        self.iter()
    }
}

impl Blocks for Iter<'_, TracePc> {
    #[inline]
    fn next_block<'s>(&'s mut self, space: &'s mut Block) -> &'s [u64] {
        let count = self.copy(space);
        &space[..count]
    }
}

/// Signals that the caller owns.
#[derive(Clone, Debug)]
pub struct Owned<'a, T>(&'a [T]);

impl<'a> Source for &'a [u64] {
    type Blocks = Owned<'a, u64>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        Owned(self)
    }
}

impl Blocks for Owned<'_, u64> {
    #[inline]
    fn next_block<'s>(&'s mut self, _: &'s mut Block) -> &'s [u64] {
        let (block, rest) = self.0.split_at(self.0.len().min(BLOCK));
        self.0 = rest;
        block
    }
}

impl<'a> Source for &'a [Pc] {
    type Blocks = Owned<'a, Pc>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        Owned(self)
    }
}

impl Blocks for Owned<'_, Pc> {
    #[inline]
    fn next_block<'s>(&'s mut self, space: &'s mut Block) -> &'s [u64] {
        let (block, rest) = self.0.split_at(self.0.len().min(BLOCK));
        self.0 = rest;
        for (to, from) in space.iter_mut().zip(block) {
            *to = from.address();
        }
        &space[..block.len()]
    }
}

impl<'a, const N: usize> Source for &'a [u64; N] {
    type Blocks = Owned<'a, u64>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        Owned(self)
    }
}

impl<'a> Source for &'a Vec<u64> {
    type Blocks = Owned<'a, u64>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        Owned(self)
    }
}

impl<'a> Source for &'a Vec<Pc> {
    type Blocks = Owned<'a, Pc>;

    #[inline]
    fn blocks(self) -> Self::Blocks {
        Owned(self)
    }
}

/// Calls for each signal, in order.
#[inline]
pub(crate) fn for_each(signals: impl Source, mut what: impl FnMut(u64)) {
    let mut blocks = signals.blocks();
    let mut space = [0; BLOCK];
    loop {
        let block = blocks.next_block(&mut space);
        if block.is_empty() {
            return;
        }
        for &signal in block {
            what(signal);
        }
    }
}
