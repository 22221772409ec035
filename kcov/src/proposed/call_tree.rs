//! From records of entries and exits to calls within calls.

use super::{ExtendedPc, RecordKind};
use crate::pc::Pc;
use core::iter::FusedIterator;

/// Walks over extended records, keeping count of how deep in calls each one is.
///
/// A trace seldom begins and ends at the same depth: it begins behind the entries of what enabled
/// or what a reset interrupted, and a full buffer or a function that never returns lacks exits. So
/// the depth is counted from the shallowest place of the whole trace, which is 0; what left more
/// than was entered begins deeper, and what is still open at the end is [`open`](Self::open).
///
/// ```
/// use kcov::proposed::{CallTree, Event, ExtendedPc};
///
/// // A function that calls another one; the exit before them is of a function entered before.
/// let words = [0x1000_0000_0000_0010, 0x20, 0x30, 0x1000_0000_0000_0038, 0x1000_0000_0000_0028];
/// let tree = CallTree::new(words.into_iter().map(ExtendedPc::from_word));
/// let depths: Vec<usize> = tree.map(|step| step.depth).collect();
/// assert_eq!(depths, [0, 0, 1, 1, 0]);
/// ```
#[derive(Clone, Debug)]
pub struct CallTree<I> {
    records: I,
    /// How many functions are open, those among them that were entered before the trace.
    depth: usize,
}

/// One record with its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// How many calls, of those that can be told apart in the trace, this is in. A function's exit
    /// is as deep as its entry, and its blocks are one deeper.
    pub depth: usize,
    /// What happened.
    pub event: Event,
}

/// What a record means to a call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A function is entered.
    Enter(Pc),
    /// The function that was entered last, and not left, is left.
    Leave(Pc),
    /// A block within a function, or a record of an unknown kind.
    Within(ExtendedPc),
}

impl<I: Iterator<Item = ExtendedPc> + Clone> CallTree<I> {
    /// Begins to walk. Goes over the records once to find the shallowest place.
    pub fn new(records: impl IntoIterator<Item = ExtendedPc, IntoIter = I>) -> CallTree<I> {
        let records = records.into_iter();
        let (mut open, mut left) = (0_usize, 0);
        for record in records.clone() {
            match record.kind() {
                RecordKind::Entry => open += 1,
                RecordKind::Exit if open == 0 => left += 1,
                RecordKind::Exit => open -= 1,
                _ => {}
            }
        }
        CallTree { records, depth: left }
    }
}

impl<I> CallTree<I> {
    /// How many functions are open here. Before the first step, those that the trace leaves
    /// without having entered them; after the last one, those that it does not leave.
    #[must_use]
    pub fn open(&self) -> usize {
        self.depth
    }
}

impl<I: Iterator<Item = ExtendedPc>> Iterator for CallTree<I> {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let record = self.records.next()?;
        let depth = self.depth;
        Some(match record.kind() {
            RecordKind::Entry => {
                self.depth += 1;
                Step { depth, event: Event::Enter(record.pc()) }
            }
            RecordKind::Exit => {
                // Not below 0, by what `new` has counted; an iterator whose clone yields something
                // else is no reason to panic.
                self.depth = depth.saturating_sub(1);
                Step { depth: self.depth, event: Event::Leave(record.pc()) }
            }
            _ => Step { depth, event: Event::Within(record) },
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.records.size_hint()
    }
}

impl<I: FusedIterator<Item = ExtendedPc>> FusedIterator for CallTree<I> {}
