//! The executor of a fuzzer.

use super::clock::Clock;
use super::link::{Host, Saved};
use super::{Fuzz, Traced};
use crate::{Background, CompareExecutor, Forked, InProcess, SignalObserver, Sources, failed};
use kcov::Trace;
use kcov::mode::TraceCmp;
use libafl::Error;
use libafl::corpus::{Corpus, CorpusId, HasCurrentCorpusId};
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::inputs::Input;
use libafl::state::{HasCorpus, HasExecutions};
use libafl_bolts::tuples::RefIndexable;
use std::collections::HashMap;

/// The executor that a [`Fuzz`] asks for. The host knows each input before it runs.
pub(super) struct Place<F> {
    executor: Which<F>,
    /// The host's name for the input that is being mutated.
    parent: Option<u64>,
    /// The host's name for each input. Minimizing an input changes it only when the host gets the
    /// smaller one.
    names: HashMap<CorpusId, u64>,
    pub(super) clock: Clock,
    pub(super) host: Host,
}

enum Which<F> {
    Here(Box<InProcess<F, SignalObserver>>),
    Children(Box<Forked<F, SignalObserver>>),
    Background(Box<Background<F, SignalObserver>>),
}

impl<F> Place<F> {
    pub(super) fn new<I>(fuzz: &Fuzz, observer: SignalObserver, harness: F) -> Result<Self, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        let builder = fuzz.builder.clone();
        let open = || builder.clone().open().map_err(failed);
        let sources = |remote| Sources::new(open()?, remote).map_err(failed);
        let here = |harness| InProcess::new(open()?, observer.clone(), harness).map_err(failed);
        let executor = match fuzz.traced.clone() {
            Traced::Here => Which::Here(Box::new(here(harness)?)),
            Traced::Both(remote, quiet) => {
                let sources = sources(remote)?.with_quiet(quiet, Sources::LIMIT);
                Which::Here(Box::new(here(harness)?.with_sources(sources)))
            }
            Traced::Children(fork, limit) => {
                let executor = Forked::new(fork, builder, limit, observer, harness)?;
                Which::Children(Box::new(executor.served()?))
            }
            Traced::Background(remote) => {
                let executor = Background::new(sources(remote)?, observer, harness);
                Which::Background(Box::new(executor))
            }
        };
        let clock = Clock::new(fuzz.signal, matches!(executor, Which::Here(_)));
        let (host, names) = (Host::new()?, HashMap::new());
        Ok(Place { executor, parent: None, names, clock, host })
    }

    /// The host's name for the current input of the corpus, if there is one.
    fn current<I, S>(&mut self, state: &S) -> Result<Option<u64>, Error>
    where
        I: Saved + Clone,
        S: HasCorpus<I> + HasCurrentCorpusId,
    {
        let Some(id) = state.current_corpus_id()? else { return Ok(None) };
        if let Some(name) = self.names.get(&id) {
            return Ok(Some(*name));
        }
        let name = self.host.name(&state.corpus().cloned_input_for_id(id)?)?;
        self.names.insert(id, name);
        Ok(Some(name))
    }

    /// Sends an input that the stages have minimized to the host, in place of the original.
    pub(super) fn processed<I: Saved>(&mut self, id: CorpusId, input: &I) -> Result<(), Error> {
        if let Some(name) = self.names.get_mut(&id) {
            *name = self.host.replaced(*name, input)?;
        }
        Ok(())
    }

    pub(super) fn observer(&self) -> &SignalObserver {
        match &self.executor {
            Which::Here(executor) => executor.observer(),
            Which::Children(executor) => executor.observer(),
            Which::Background(executor) => executor.observer(),
        }
    }
}

impl<F, EM, I, S, Z> Executor<EM, I, S, Z> for Place<F>
where
    F: FnMut(&I) -> ExitKind,
    I: Input + Saved,
    S: HasExecutions + HasCorpus<I> + HasCurrentCorpusId,
{
    fn run_target(
        &mut self,
        fuzzer: &mut Z,
        state: &mut S,
        manager: &mut EM,
        input: &I,
    ) -> Result<ExitKind, Error> {
        self.clock.tick(*state.executions(), &self.host)?;
        self.parent = self.current(state)?;
        self.host.run(input, self.parent)?;
        match &mut self.executor {
            Which::Here(executor) => executor.run_target(fuzzer, state, manager, input),
            Which::Children(executor) => executor.run_target(fuzzer, state, manager, input),
            Which::Background(executor) => executor.run_target(fuzzer, state, manager, input),
        }
    }
}

impl<F: FnMut(&I) -> ExitKind, I: Input + Saved> CompareExecutor<I> for Place<F> {
    fn compare(
        &mut self,
        input: &I,
        look: impl FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        self.host.run(input, self.parent)?;
        match &mut self.executor {
            Which::Here(executor) => executor.compare(input, look),
            Which::Children(executor) => executor.compare(input, look),
            Which::Background(executor) => executor.compare(input, look),
        }
    }
}

impl<F> HasObservers for Place<F> {
    type Observers = (SignalObserver, ());

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        match &self.executor {
            Which::Here(executor) => executor.observers(),
            Which::Children(executor) => executor.observers(),
            Which::Background(executor) => executor.observers(),
        }
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        match &mut self.executor {
            Which::Here(executor) => executor.observers_mut(),
            Which::Children(executor) => executor.observers_mut(),
            Which::Background(executor) => executor.observers_mut(),
        }
    }
}
