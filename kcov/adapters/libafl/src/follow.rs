//! Comparisons that come to light one after the other.

use crate::CompareExecutor;
use crate::compare::{Search, places};
use kcov::Pc;
use kcov_signal::{CmpFilter, Operands, Replacement};
use libafl::corpus::{CorpusId, HasCurrentCorpusId};
use libafl::stages::Stage;
use libafl::state::{HasCurrentTestcase, HasExecutions, HasRand};
use libafl::{Error, Evaluator};
use libafl_bolts::rands::Rand;
use std::borrow::Cow;
use std::collections::{HashMap, HashSet, VecDeque};
use std::marker::PhantomData;

/// A stage that solves chains of comparisons.
///
/// It replaces an operand in the current input with the value that the kernel compared it with, runs
/// the result in comparison mode, and continues with a comparison that is new in that run. This passes
/// checks that reach new code only together: the letters of a word that a loop compares, or a field and
/// the checksum over it. Each step is also evaluated as an input.
///
/// It prefers the site that compared last, as in a loop, then sites that it has tried least often and
/// operands that occur in few places of the input. To make bytes distinct, it first randomizes those
/// that do not change which sites compare. Sites whose operands vary between runs of the same input,
/// such as times, are left out.
#[derive(Debug)]
pub struct FollowStage<I> {
    filter: CmpFilter,
    /// How often a comparison of each site was to be satisfied.
    tries: HashMap<Pc, usize>,
    /// The inputs that it has followed.
    followed: HashSet<CorpusId>,
    input: PhantomData<fn(&I)>,
}

/// The stage follows each input in its first round, and later in one of this many rounds on average,
/// because it runs inputs more often than the other stages together.
const ROUNDS: usize = 4;

/// How often the stage starts from the current input.
const STARTS: usize = 16;

/// How many comparisons it satisfies at most from one start.
const STEPS: usize = 8;

/// How many runs it spends on randomizing at most.
const RANDOM: usize = 64;

/// An input's comparisons, without duplicates, in trace order.
type Compared = Vec<Operands>;

impl<I> FollowStage<I> {
    /// A stage that follows all comparisons of unequal operands.
    #[must_use]
    pub fn new() -> FollowStage<I> {
        let filter = CmpFilter::new().skip_equal();
        FollowStage { filter, tries: HashMap::new(), followed: HashSet::new(), input: PhantomData }
    }

    /// Chooses a change that may satisfy one of these comparisons, if possible one of the site `last`.
    /// Returns the site, too.
    fn choose(
        &mut self,
        compared: &[Operands],
        last: Option<Pc>,
        parts: &[Cow<'_, [u8]>],
        rand: &mut impl Rand,
    ) -> Option<(Pc, Replacement)> {
        let changes = compared.iter().flat_map(|operands| {
            operands.replacements().map(move |change| (operands.pc(), change))
        });
        // Bytes that occur often, such as zeros, are seldom the ones that the kernel compared.
        let weighed =
            changes.map(|(pc, change)| (places(parts, change.find.as_bytes()).count(), pc, change));
        let mut may: Vec<(usize, Pc, Replacement)> =
            weighed.filter(|(places, ..)| *places > 0).collect();
        if may.iter().any(|(_, pc, _)| Some(*pc) == last) {
            may.retain(|(_, pc, _)| Some(*pc) == last);
        }
        let cost = |(places, pc, _): &(usize, Pc, Replacement)| {
            places + self.tries.get(pc).copied().unwrap_or(0)
        };
        let least = may.iter().map(cost).min()?;
        may.retain(|one| cost(one) == least);
        let (_, pc, change) = rand.choose(may)?;
        *self.tries.entry(pc).or_default() += 1;
        Some((pc, change))
    }

    /// Runs an input in comparison mode. Leaves out the sites in `noise`.
    fn compared<E, S>(
        &self,
        executor: &mut E,
        state: &mut S,
        input: &I,
        noise: &HashSet<Pc>,
    ) -> Result<Compared, Error>
    where
        E: CompareExecutor<I>,
        S: HasExecutions,
    {
        let (mut seen, mut all) = (HashSet::new(), Vec::new());
        *state.executions_mut() += 1;
        executor.compare(input, &mut |trace| {
            let admitted = self.filter.of(trace.iter()).filter(|one| !noise.contains(&one.pc()));
            all.extend(admitted.filter(|one| seen.insert(*one)));
        })?;
        Ok(all)
    }
}

/// Makes a change in one of the places that contain its bytes.
fn replace(input: &mut impl Search, change: &Replacement, rand: &mut impl Rand) {
    let parts = input.parts();
    let places: Vec<_> = places(&parts, change.find.as_bytes()).collect();
    let Some((number, at)) = rand.choose(places) else { return };
    let mut part = parts[number].to_vec();
    let bytes = change.replace.as_bytes();
    part[at..at + bytes.len()].copy_from_slice(bytes);
    input.set_part(number, &part);
}

/// Randomizes the bytes that `same` allows to change: whole parts of the input, or else halves of
/// them, and so on.
fn randomize<I: Search + Clone, S: HasRand>(
    mut input: I,
    state: &mut S,
    mut same: impl FnMut(&I, &mut S) -> Result<bool, Error>,
) -> Result<I, Error> {
    let mut left: VecDeque<_> =
        input.parts().iter().map(|part| 0..part.len()).enumerate().collect();
    for _ in 0..RANDOM {
        let Some((number, range)) = left.pop_front() else { break };
        if range.is_empty() {
            continue;
        }
        let mut part = input.parts()[number].to_vec();
        part[range.clone()].fill_with(|| state.rand_mut().next() as u8);
        let mut other = input.clone();
        other.set_part(number, &part);
        if same(&other, state)? {
            input = other;
        } else if range.len() > 1 {
            let middle = range.start + range.len() / 2;
            left.extend([(number, range.start..middle), (number, middle..range.end)]);
        }
    }
    Ok(input)
}

impl<I> Default for FollowStage<I> {
    fn default() -> FollowStage<I> {
        FollowStage::new()
    }
}

impl<E, EM, I, S, Z> Stage<E, EM, S, Z> for FollowStage<I>
where
    E: CompareExecutor<I>,
    I: Search + Clone,
    S: HasCurrentTestcase<I> + HasCurrentCorpusId + HasExecutions + HasRand,
    Z: Evaluator<E, EM, I, S>,
{
    fn perform(
        &mut self,
        fuzzer: &mut Z,
        executor: &mut E,
        state: &mut S,
        manager: &mut EM,
    ) -> Result<(), Error> {
        let id = state.current_corpus_id()?;
        let is_first = id.is_some_and(|id| self.followed.insert(id));
        if !is_first && state.rand_mut().below_or_zero(ROUNDS) > 0 {
            return Ok(());
        }
        let start = state.current_input_cloned()?;
        let once = self.compared(executor, state, &start, &HashSet::new())?;
        let once: HashSet<_> = once.into_iter().collect();
        let again = self.compared(executor, state, &start, &HashSet::new())?;
        let varying = again.iter().filter(|one| !once.contains(one));
        let noise: HashSet<Pc> = varying.map(|one| one.pc()).collect();
        let sites =
            |compared: Compared| compared.into_iter().map(Operands::pc).collect::<HashSet<_>>();
        let all = sites(self.compared(executor, state, &start, &noise)?);
        let start = randomize(start, state, |input, state| {
            Ok(sites(self.compared(executor, state, input, &noise)?) == all)
        })?;
        let first = self.compared(executor, state, &start, &noise)?;
        for _ in 0..STARTS {
            let mut input = start.clone();
            let mut before: HashSet<_> = first.iter().copied().collect();
            let mut new = first.clone();
            let mut last = None;
            for _ in 0..STEPS {
                let rand = state.rand_mut();
                let chosen = self.choose(&new, last, &input.parts(), rand);
                let Some((pc, change)) = chosen else { break };
                last = Some(pc);
                replace(&mut input, &change, rand);
                fuzzer.evaluate_input(state, executor, manager, &input)?;
                new = self.compared(executor, state, &input, &noise)?;
                new.retain(|one| before.insert(*one));
            }
        }
        Ok(())
    }
}

crate::no_restart!(FollowStage<I>, "kcov-follow");
