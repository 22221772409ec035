//! Nested calls from records of function entries and exits.

use super::{ExtendedPc, RecordKind};
use crate::pc::Pc;
use core::iter::FusedIterator;

/// Walks over extended records and tracks the call depth of each one.
///
/// A trace rarely begins and ends at the same depth. It lacks the entries of functions that were
/// running when tracing began, and the exits of functions that had not returned when it ended or
/// the buffer was full. So depth 0 is the shallowest point of the whole trace: a trace with extra
/// exits begins deeper, and [`open`](Self::open) counts the functions still open at the end.
///
/// ```
/// use kcov::proposed::{CallTree, Event, ExtendedPc};
///
/// // A function that calls another. The first exit belongs to a function entered before the trace.
/// let words = [0x1000_0000_0000_0010, 0x20, 0x30, 0x1000_0000_0000_0038, 0x1000_0000_0000_0028];
/// let tree = CallTree::new(words.into_iter().map(ExtendedPc::from_word));
/// let depths: Vec<usize> = tree.map(|step| step.depth).collect();
/// assert_eq!(depths, [0, 0, 1, 1, 0]);
/// ```
#[derive(Clone, Debug)]
pub struct CallTree<I> {
    records: I,
    /// Number of open functions, including those entered before the trace.
    depth: usize,
}

/// One record with its depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    /// Nesting depth, among the calls visible in the trace. A function's exit is as deep as its
    /// entry; its blocks are one deeper.
    pub depth: usize,
    /// What happened.
    pub event: Event,
}

/// The meaning of a record for a call tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Event {
    /// A function is entered.
    Enter(Pc),
    /// The innermost open function is left.
    Leave(Pc),
    /// A block within a function, or a record of an unknown kind.
    Within(ExtendedPc),
}

impl<I: Iterator<Item = ExtendedPc> + Clone> CallTree<I> {
    /// Starts a walk. Goes over the records once to find the shallowest point.
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
    /// Number of open functions. Before the first step: functions that the trace leaves but does
    /// not enter. After the last step: functions that it does not leave.
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
                // By the count in `new`, the depth stays above 0, unless the iterator's clone
                // yields other items. Do not panic then.
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
