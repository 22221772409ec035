//! Mutations of programs.

use super::calls::{Calls, Param};
use super::generate::number;
use super::{Argument, Program};
use libafl::corpus::{Corpus, CorpusId};
use libafl::inputs::BytesInput;
use libafl::mutators::{
    HavocMutationsNoCrossoverType, HavocScheduledMutator, I2SRandReplace, MutationResult, Mutator,
    TokenInsert, TokenReplace, Tokens, havoc_mutations_no_crossover,
};
use libafl::observers::{CmpValues, CmpValuesMetadata};
use libafl::state::{HasCorpus, HasMaxSize, HasRand};
use libafl::{Error, HasMetadata, random_corpus_id};
use libafl_bolts::Named;
use libafl_bolts::rands::Rand;
use std::borrow::Cow;

/// The mutation of programs, for LibAFL's scheduled mutators. Each time it makes one change:
///
/// - inserts a call, and those that it takes results of;
/// - removes a call;
/// - makes a call once more, maybe with the results of other calls;
/// - changes an argument;
/// - appends a program of the corpus;
/// - puts an operand of a comparison in the place of the other, if a
///   [`ComparisonStage`](crate::ComparisonStage) has found any.
#[derive(Debug)]
pub struct Change<'c> {
    calls: &'c Calls,
    most: usize,
    bytes: HavocScheduledMutator<HavocMutationsNoCrossoverType>,
}

impl Calls {
    /// The mutation of programs of at most `most` calls.
    #[must_use]
    pub fn mutation(&self, most: usize) -> Change<'_> {
        let bytes = HavocScheduledMutator::new(havoc_mutations_no_crossover());
        Change { calls: self, most, bytes }
    }
}

impl<S> Mutator<Program, S> for Change<'_>
where
    S: HasRand + HasCorpus<Program> + HasMaxSize + HasMetadata,
{
    fn mutate(&mut self, state: &mut S, program: &mut Program) -> Result<MutationResult, Error> {
        let changed = match state.rand_mut().below_or_zero(6) {
            0 => self.insert(state.rand_mut(), program),
            1 => remove(state.rand_mut(), program),
            2 => self.repeat(state.rand_mut(), program),
            3 => self.argument(state, program)?,
            4 => self.splice(state, program)?,
            _ => compare(state, program)?,
        };
        Ok(if changed { MutationResult::Mutated } else { MutationResult::Skipped })
    }

    fn post_exec(&mut self, _: &mut S, _: Option<CorpusId>) -> Result<(), Error> {
        Ok(())
    }
}

impl Named for Change<'_> {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("ChangeProgram")
    }
}

impl Change<'_> {
    fn insert(&self, rand: &mut impl Rand, program: &mut Program) -> bool {
        if program.calls.len() >= self.most {
            return false;
        }
        let at = rand.between(0, program.calls.len());
        program.insert_at(at, |before| self.calls.append_any(before, rand));
        true
    }

    fn repeat(&self, rand: &mut impl Rand, program: &mut Program) -> bool {
        let Some(at) = rand.choose(0..program.calls.len()) else { return false };
        if program.calls.len() >= self.most {
            return false;
        }
        let mut call = program.calls[at].clone();
        let params = self.calls.descriptions.get(call.number).map_or(&[][..], |call| &call.params);
        let place = rand.between(at + 1, program.calls.len());
        program.insert_at(place, |before| {
            for (argument, param) in call.arguments.iter_mut().zip(params) {
                if let Argument::Result(result) = argument
                    && rand.coinflip(0.5)
                {
                    *result = self.calls.producer(param.resources(), &before.calls, rand);
                }
            }
            before.calls.push(call);
        });
        true
    }

    fn argument<S>(&mut self, state: &mut S, program: &mut Program) -> Result<bool, Error>
    where
        S: HasRand + HasMaxSize + HasMetadata,
    {
        let constant = constant(state);
        let rand = state.rand_mut();
        let Some(at) = rand.choose(0..program.calls.len()) else { return Ok(false) };
        let call = &program.calls[at];
        let Some(description) = self.calls.descriptions.get(call.number) else { return Ok(false) };
        let Some(place) = rand.choose(0..call.arguments.len()) else { return Ok(false) };
        let Some(&param) = description.params.get(place) else { return Ok(false) };
        let (before, after) = program.calls.split_at_mut(at);
        match (&mut after[0].arguments[place], param) {
            (Argument::Length, _) => return Ok(false),
            (Argument::Result(result), Param::Result(_) | Param::AnyResult(_)) => {
                *result = self.calls.producer(param.resources(), before, rand);
            }
            (Argument::Number(was), Param::Number) => {
                *was = match (rand.below_or_zero(5), constant) {
                    (0, _) => number(rand),
                    (1, Some(constant)) => constant,
                    (2, _) => *was ^ 1 << rand.below_or_zero(64),
                    (3, _) => was.wrapping_add(rand.between(1, 16) as u64),
                    _ => was.wrapping_sub(rand.between(1, 16) as u64),
                }
            }
            (Argument::Bytes(bytes), Param::Bytes(most)) => {
                let size = state.max_size();
                state.set_max_size(most);
                let result = change_bytes(bytes, |bytes| self.change_bytes(state, bytes));
                state.set_max_size(size);
                bytes.truncate(most);
                return result;
            }
            (argument, param) => {
                // No parameter left needs calls.
                *argument = self.calls.argument(param, &mut Program::default(), rand, 0);
            }
        }
        Ok(true)
    }

    fn change_bytes<S>(
        &mut self,
        state: &mut S,
        bytes: &mut BytesInput,
    ) -> Result<MutationResult, Error>
    where
        S: HasRand + HasMaxSize + HasMetadata,
    {
        match state.rand_mut().below_or_zero(8) {
            0 => TokenInsert.mutate(state, bytes),
            1 => TokenReplace.mutate(state, bytes),
            _ => self.bytes.mutate(state, bytes),
        }
    }

    fn splice<S>(&self, state: &mut S, program: &mut Program) -> Result<bool, Error>
    where
        S: HasRand + HasCorpus<Program>,
    {
        if state.corpus().count() == 0 || program.calls.len() >= self.most {
            return Ok(false);
        }
        let id = random_corpus_id!(state.corpus(), state.rand_mut());
        let mut other = state.corpus().cloned_input_for_id(id)?;
        other.calls.truncate(self.most - program.calls.len());
        program.append(&other);
        Ok(!other.is_empty())
    }
}

/// A constant that the kernel compares with.
fn constant<S: HasRand + HasMetadata>(state: &mut S) -> Option<u64> {
    let count = state.metadata::<Tokens>().map_or(0, |tokens| tokens.tokens().len());
    let chosen = state.rand_mut().below_or_zero(count);
    let tokens = state.metadata::<Tokens>().ok()?;
    let token = tokens.tokens().get(chosen)?;
    let mut bytes = [0; size_of::<u64>()];
    bytes.get_mut(..token.len())?.copy_from_slice(token);
    Some(u64::from_le_bytes(bytes))
}

fn remove(rand: &mut impl Rand, program: &mut Program) -> bool {
    let at = rand.choose(0..program.calls.len());
    if let Some(at) = at {
        program.remove(at);
    }
    at.is_some()
}

/// Changes bytes as an input of LibAFL.
fn change_bytes(
    bytes: &mut Vec<u8>,
    change: impl FnOnce(&mut BytesInput) -> Result<MutationResult, Error>,
) -> Result<bool, Error> {
    let mut input = BytesInput::new(std::mem::take(bytes));
    let result = change(&mut input);
    *bytes = input.into();
    Ok(result? == MutationResult::Mutated)
}

fn compare<S>(state: &mut S, program: &mut Program) -> Result<bool, Error>
where
    S: HasRand + HasMaxSize + HasMetadata,
{
    let Ok(metadata) = state.metadata::<CmpValuesMetadata>() else { return Ok(false) };
    let list = metadata.list.len();
    let chosen = state.rand_mut().below_or_zero(list);
    let Some(values) = state.metadata::<CmpValuesMetadata>()?.list.get(chosen).cloned() else {
        return Ok(false);
    };
    let arguments = program.calls.iter_mut().flat_map(|call| &mut call.arguments);
    let may_hold =
        |argument: &&mut Argument| matches!(argument, Argument::Number(_) | Argument::Bytes(_));
    let Some(argument) = state.rand_mut().choose(arguments.filter(may_hold).collect::<Vec<_>>())
    else {
        return Ok(false);
    };
    match argument {
        Argument::Number(number) => Ok(replace_operand(number, &values)),
        Argument::Bytes(bytes) => change_bytes(bytes, |bytes| I2SRandReplace.mutate(state, bytes)),
        Argument::Length | Argument::Result(_) => Ok(false),
    }
}

/// Replaces the low bytes of a number that equal an operand, in either byte order.
fn replace_operand(number: &mut u64, values: &CmpValues) -> bool {
    let Some((first, second, constant)) = values.to_u64_tuple() else { return false };
    let unused = match values {
        CmpValues::U8(_) => 56,
        CmpValues::U16(_) => 48,
        CmpValues::U32(_) => 32,
        _ => 0,
    };
    let mask = u64::MAX >> unused;
    let swap = |value: u64| (value << unused).swap_bytes();
    let ways = [
        Some((second, first)),
        Some((swap(second), swap(first))),
        (!constant).then_some((first, second)),
        (!constant).then_some((swap(first), swap(second))),
    ];
    let way = ways.into_iter().flatten().find(|(from, _)| *number & mask == *from);
    if let Some((_, to)) = way {
        *number = *number & !mask | to;
    }
    way.is_some()
}
