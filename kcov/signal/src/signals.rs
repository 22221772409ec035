//! Signals by the block: how everything in this module reads.
//!
//! A block is copied once from where the signals lie to the stack; where a question is all that is
//! asked, a run is looked at where it lies. A word of a run may be loaded more than once: one that
//! somebody writes meanwhile may count as what it was, as what it becomes, or as neither, and nothing
//! that bounds an access is taken from a word a second time.

use crate::mode::TracePc;
use crate::pc::Pc;
use crate::run::Run;
use crate::trace::{Iter, Trace};
use alloc::vec::Vec;

/// Signals in a block.
pub(crate) const BLOCK: usize = 128;

/// Room for a block.
pub(crate) type Block = [u64; BLOCK];

pub(crate) mod sealed {
    use crate::run::Run;

    /// Gives signals a block at a time.
    pub trait Blocks {
        /// The next signals, at most a block of them; none at the end.
        #[doc(hidden)]
        fn next_block<'s>(&'s mut self, space: &'s mut super::Block) -> &'s [u64];

        /// The next signals where they lie, or else copied; none at the end.
        #[doc(hidden)]
        #[allow(private_interfaces, reason = "sealed: nobody else names it")]
        #[inline]
        fn next_run<'s>(&'s mut self, space: &'s mut super::Block) -> Run<'s> {
            Run::from(self.next_block(space))
        }
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

    #[allow(private_interfaces, reason = "sealed: nobody else names it")]
    #[inline]
    fn next_run<'s>(&'s mut self, space: &'s mut Block) -> Run<'s> {
        match self.run() {
            Some(run) => {
                self.finish();
                run
            }
            None => Run::from(self.next_block(space)),
        }
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

    #[allow(private_interfaces, reason = "sealed: nobody else names it")]
    #[inline]
    fn next_run<'s>(&'s mut self, _: &'s mut Block) -> Run<'s> {
        Run::from(core::mem::take(&mut self.0))
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

/// The next block of signals that are made of others: `make` turns a block of these into how many it
/// says.
#[inline]
pub(super) fn next_made<'s>(
    from: &mut impl Blocks,
    space: &mut Block,
    made: &'s mut Block,
    mut make: impl FnMut(&[u64], &mut Block) -> usize,
) -> &'s [u64] {
    loop {
        let block = from.next_block(space);
        if block.is_empty() {
            return &[];
        }
        let count = make(block, made);
        // A block of none would be the end.
        if count > 0 {
            return &made[..count];
        }
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
        block.iter().for_each(|&signal| what(signal));
    }
}

/// Whether something holds for all runs of signals; stops at the first one for which it does not.
#[inline]
pub(crate) fn all_runs(signals: impl Source, mut holds: impl FnMut(Run<'_>) -> bool) -> bool {
    let mut blocks = signals.blocks();
    let mut space = [0; BLOCK];
    loop {
        let run = blocks.next_run(&mut space);
        if run.len() == 0 {
            return true;
        }
        if !holds(run) {
            return false;
        }
    }
}
