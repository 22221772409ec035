//! The executor of a fuzzer.

use super::{Fuzz, Traced};
use crate::{Background, CompareExecutor, Forked, InProcess, SignalObserver, failed};
use kcov::Trace;
use kcov::mode::TraceCmp;
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;

/// The executor that a [`Fuzz`] asks for.
pub(super) enum Place<F> {
    Here(Box<InProcess<F, SignalObserver>>),
    Children(Box<Forked<F, SignalObserver>>),
    Background(Box<Background<F, SignalObserver>>),
}

impl<F> Place<F> {
    pub(super) fn new(fuzz: &Fuzz, observer: SignalObserver, harness: F) -> Result<Self, Error> {
        let builder = fuzz.builder.clone();
        let open = || builder.clone().open().map_err(failed);
        Ok(match fuzz.traced.clone() {
            Traced::Here => {
                let executor = InProcess::new(open()?, observer, harness);
                Place::Here(Box::new(executor.map_err(failed)?))
            }
            Traced::Children(fork, limit) => {
                Place::Children(Box::new(Forked::new(fork, builder, limit, observer, harness)?))
            }
            Traced::Background(sources) => {
                let executor = Background::new(open()?, sources, observer, harness);
                Place::Background(Box::new(executor.map_err(failed)?))
            }
        })
    }

    pub(super) fn observer(&self) -> &SignalObserver {
        match self {
            Place::Here(executor) => executor.observer(),
            Place::Children(executor) => executor.observer(),
            Place::Background(executor) => executor.observer(),
        }
    }
}

impl<F, EM, I, S, Z> Executor<EM, I, S, Z> for Place<F>
where
    F: FnMut(&I) -> ExitKind,
    S: HasExecutions,
{
    fn run_target(
        &mut self,
        fuzzer: &mut Z,
        state: &mut S,
        manager: &mut EM,
        input: &I,
    ) -> Result<ExitKind, Error> {
        match self {
            Place::Here(executor) => executor.run_target(fuzzer, state, manager, input),
            Place::Children(executor) => executor.run_target(fuzzer, state, manager, input),
            Place::Background(executor) => executor.run_target(fuzzer, state, manager, input),
        }
    }
}

impl<F: FnMut(&I) -> ExitKind, I> CompareExecutor<I> for Place<F> {
    fn compare(
        &mut self,
        input: &I,
        look: impl FnOnce(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        match self {
            Place::Here(executor) => executor.compare(input, look),
            Place::Children(executor) => executor.compare(input, look),
            Place::Background(executor) => executor.compare(input, look),
        }
    }
}

impl<F> HasObservers for Place<F> {
    type Observers = (SignalObserver, ());

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        match self {
            Place::Here(executor) => executor.observers(),
            Place::Children(executor) => executor.observers(),
            Place::Background(executor) => executor.observers(),
        }
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        match self {
            Place::Here(executor) => executor.observers_mut(),
            Place::Children(executor) => executor.observers_mut(),
            Place::Background(executor) => executor.observers_mut(),
        }
    }
}
