//! Sequences of calls as inputs.

mod calls;
mod generate;
mod minimize;
mod mutate;
mod text;

pub use calls::{Calls, Param, Resource};
pub use generate::Generate;
pub use minimize::MinimizeStage;
pub use mutate::Change;

use crate::compare::Search;
use libafl::inputs::Input;
use libafl_bolts::HasLen;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// A sequence of calls that [`Calls`] describes. The results of earlier calls may be arguments of
/// later ones.
///
/// A saved program names its calls by number, so it fits only a description that lists the same
/// calls in the same order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Program {
    pub(crate) calls: Vec<Call>,
}

/// A call with its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) struct Call {
    /// The place of its description.
    pub(crate) number: usize,
    pub(crate) arguments: Vec<Argument>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(crate) enum Argument {
    Number(u64),
    Bytes(Vec<u8>),
    /// The length of the last bytes before it.
    Length,
    /// The result of the call at this place, or of none.
    Result(Option<usize>),
}

impl Program {
    /// Whether there are no calls.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Replaces the calls at `at` and later by their result at other places.
    fn renumber(calls: &mut [Call], place: impl Fn(usize) -> Option<usize>) {
        for call in calls {
            for argument in &mut call.arguments {
                if let Argument::Result(result) = argument {
                    *result = result.and_then(&place);
                }
            }
        }
    }

    /// Removes a call. Arguments that were its result become no result.
    pub(crate) fn remove(&mut self, at: usize) {
        self.calls.remove(at);
        Program::renumber(&mut self.calls[at..], |place| match place.cmp(&at) {
            std::cmp::Ordering::Less => Some(place),
            std::cmp::Ordering::Equal => None,
            std::cmp::Ordering::Greater => Some(place - 1),
        });
    }

    /// Programs that lack a part of this one: ever fewer of its calls, the end of some bytes, or a
    /// number.
    pub(crate) fn smaller(&self) -> Vec<Program> {
        let mut all = Vec::new();
        let mut part = self.calls.len() / 2;
        while part > 0 {
            for at in (0..self.calls.len()).step_by(part) {
                let mut shorter = self.clone();
                (at..self.calls.len().min(at + part)).for_each(|_| shorter.remove(at));
                all.push(shorter);
            }
            part = if part == 1 { 0 } else { part.div_ceil(2) };
        }
        for (place, call) in self.calls.iter().enumerate() {
            for (number, argument) in call.arguments.iter().enumerate() {
                let less = match argument {
                    Argument::Bytes(bytes) => {
                        let length = bytes.len();
                        let mut lengths =
                            vec![length / 2, length * 3 / 4, length.saturating_sub(1)];
                        lengths.dedup();
                        lengths.retain(|less| *less < length);
                        let shorter = |length: usize| Argument::Bytes(bytes[..length].to_vec());
                        lengths.into_iter().map(shorter).collect()
                    }
                    Argument::Number(1..) => vec![Argument::Number(0)],
                    _ => continue,
                };
                for less in less {
                    let mut shorter = self.clone();
                    shorter.calls[place].arguments[number] = less;
                    all.push(shorter);
                }
            }
        }
        all
    }

    /// Adds the calls of another program. Their results stay their own.
    pub(crate) fn append(&mut self, other: &Program) {
        let before = self.calls.len();
        self.calls.extend_from_slice(&other.calls);
        Program::renumber(&mut self.calls[before..], |place| Some(place + before));
    }

    /// Splits off the calls from `at` on, runs `insert` on the others, and puts them together again.
    pub(crate) fn insert_at(&mut self, at: usize, insert: impl FnOnce(&mut Program)) {
        let mut rest = self.calls.split_off(at);
        insert(self);
        let added = self.calls.len() - at;
        Program::renumber(&mut rest, |place| Some(if place < at { place } else { place + added }));
        self.calls.append(&mut rest);
    }
}

impl Input for Program {}

impl HasLen for Program {
    fn len(&self) -> usize {
        self.calls.len()
    }
}

impl Search for Program {
    fn parts(&self) -> Vec<Cow<'_, [u8]>> {
        let arguments = self.calls.iter().flat_map(|call| &call.arguments);
        let part = |argument| match argument {
            &Argument::Number(number) => Some(number.to_le_bytes().to_vec().into()),
            Argument::Bytes(bytes) => Some(bytes.into()),
            Argument::Length | Argument::Result(_) => None,
        };
        arguments.filter_map(part).collect()
    }

    fn set_part(&mut self, number: usize, bytes: &[u8]) {
        let arguments = self.calls.iter_mut().flat_map(|call| &mut call.arguments);
        let mut parts = arguments
            .filter(|argument| matches!(argument, Argument::Number(_) | Argument::Bytes(_)));
        match (parts.nth(number), bytes.try_into()) {
            (Some(Argument::Number(number)), Ok(bytes)) => *number = u64::from_le_bytes(bytes),
            (Some(Argument::Bytes(all)), _) => all.copy_from_slice(bytes),
            _ => {}
        }
    }
}
