//! Random programs.

use super::calls::{Calls, Param, Resource};
use super::{Argument, Call, Program};
use libafl::Error;
use libafl::generators::Generator;
use libafl::state::HasRand;
use libafl_bolts::rands::Rand;

/// Generates programs.
#[derive(Clone, Copy, Debug)]
pub struct Generate<'c> {
    calls: &'c Calls,
    most: usize,
}

impl<'c> Generate<'c> {
    /// Generates programs with about `most` calls at most.
    #[must_use]
    pub fn new(calls: &'c Calls, most: usize) -> Generate<'c> {
        Generate { calls, most }
    }
}

impl<S: HasRand> Generator<Program, S> for Generate<'_> {
    fn generate(&mut self, state: &mut S) -> Result<Program, Error> {
        let rand = state.rand_mut();
        let calls = rand.between(1, self.most.max(1));
        let mut program = Program::default();
        while program.calls.len() < calls && !self.calls.descriptions.is_empty() {
            self.calls.append_any(&mut program, rand);
        }
        Ok(program)
    }
}

/// How many calls may be made to get the resources for one.
const DEPTH: usize = 4;

impl Calls {
    /// Adds a random call, and before it those that it takes results of.
    pub(super) fn append_any(&self, program: &mut Program, rand: &mut impl Rand) {
        if let Some(number) = rand.choose(0..self.descriptions.len()) {
            self.append(number, program, rand, DEPTH);
        }
    }

    fn append(&self, number: usize, program: &mut Program, rand: &mut impl Rand, depth: usize) {
        let params = &self.descriptions[number].params;
        let arguments = params.iter().map(|param| self.argument(*param, program, rand, depth));
        let arguments = arguments.collect();
        program.calls.push(Call { number, arguments });
    }

    /// A random argument for a call at the end of the program, to which it may add calls.
    pub(super) fn argument(
        &self,
        param: Param,
        program: &mut Program,
        rand: &mut impl Rand,
        depth: usize,
    ) -> Argument {
        match param {
            Param::Number => Argument::Number(number(rand)),
            Param::OneOf(numbers) => {
                // An unexpected number finds checks.
                let any = rand.below_or_zero(20) == 0;
                let one = rand.choose(numbers).filter(|_| !any).copied();
                Argument::Number(one.unwrap_or_else(|| number(rand)))
            }
            Param::Flags(bits) => {
                let some = bits.iter().filter(|_| rand.coinflip(0.3));
                Argument::Number(some.fold(0, |all, bit| all | bit))
            }
            Param::Bytes(most) => {
                let length = rand.below_or_zero(most + 1);
                Argument::Bytes((0..length).map(|_| rand.next() as u8).collect())
            }
            Param::Length => Argument::Length,
            Param::Result(_) | Param::AnyResult(_) => {
                let resources = param.resources();
                let found = self.producer(resources, &program.calls, rand);
                Argument::Result(found.or_else(|| self.produce(resources, program, rand, depth)))
            }
        }
    }

    /// The place of a random one of these calls that returns one of the resources.
    pub(super) fn producer(
        &self,
        resources: &[&Resource],
        calls: &[Call],
        rand: &mut impl Rand,
    ) -> Option<usize> {
        let returns = |call: &Call| {
            self.descriptions.get(call.number).is_some_and(|call| call.returns(resources))
        };
        rand.choose((0..calls.len()).filter(|place| returns(&calls[*place])).collect::<Vec<_>>())
    }

    /// Adds a call that returns one of the resources, and returns its place.
    fn produce(
        &self,
        resources: &[&Resource],
        program: &mut Program,
        rand: &mut impl Rand,
        depth: usize,
    ) -> Option<usize> {
        let depth = depth.checked_sub(1)?;
        let all = self.descriptions.iter().enumerate();
        let numbers = all.filter(|(_, call)| call.returns(resources)).map(|(number, _)| number);
        let number = rand.choose(numbers.collect::<Vec<_>>())?;
        self.append(number, program, rand, depth);
        Some(program.calls.len() - 1)
    }
}

/// A random number, mostly a remarkable one.
pub(super) fn number(rand: &mut impl Rand) -> u64 {
    let power = 1 << rand.below_or_zero(64);
    match rand.below_or_zero(5) {
        0 => rand.below_or_zero(16) as u64,
        1 => power,
        2 => power - 1,
        3 => (power as i64).wrapping_neg() as u64,
        _ => rand.next(),
    }
}
