//! The executor of a fuzzer.

use super::clock::Clock;
use super::saved::Saved;
use super::{Fuzz, Traced};
use crate::executor::Run;
use crate::{
    CompareExecutor, CoverageObserver, Forked, InProcess, SignalObserver, Sources, failed,
};
use kcov::Trace;
use kcov::mode::TraceCmp;
use kcov_vm_guest::fuzz::{Link, name};
use libafl::Error;
use libafl::corpus::{Corpus, CorpusId, HasCurrentCorpusId};
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::inputs::Input;
use libafl::state::{HasCorpus, HasExecutions};
use libafl_bolts::tuples::RefIndexable;
use std::collections::HashMap;

/// The executor that a [`Fuzz`] asks for. The host knows each input before it runs.
pub(super) struct Place<'f, I> {
    run: Box<dyn Run<I> + 'f>,
    observers: (SignalObserver, ()),
    /// The host's name for the input that is being mutated.
    parent: Option<u64>,
    /// The host's name for each input. Minimizing an input changes it only when the host gets the
    /// smaller one.
    names: HashMap<CorpusId, u64>,
    pub(super) clock: Clock,
    /// The host of a guest, if the fuzzer runs under `kcov-vm fuzz`.
    pub(super) host: Option<Link>,
}

impl<'f, I: Input + Saved> Place<'f, I> {
    pub(super) fn new<F>(fuzz: &Fuzz, observer: SignalObserver, harness: F) -> Result<Self, Error>
    where
        F: FnMut(&I) -> ExitKind + 'f,
    {
        let builder = fuzz.builder.clone();
        let open = || builder.clone().open().map_err(failed);
        let sources = |remote| Sources::new(open()?, remote).map_err(failed);
        let run: Box<dyn Run<I> + 'f> = match fuzz.traced.clone() {
            Traced::Here => Box::new(InProcess::new(open()?, (), harness).map_err(failed)?.run),
            Traced::Both(remote, quiet) => {
                let here = InProcess::new(open()?, (), harness).map_err(failed)?;
                let sources = sources(remote)?.with_quiet(quiet, Sources::LIMIT);
                Box::new(here.with_sources(sources).run)
            }
            Traced::Background(remote) => {
                Box::new(InProcess::background(sources(remote)?, (), harness).run)
            }
            Traced::Children(fork, limit) => {
                Box::new(Forked::new(fork, builder, limit, (), harness)?.served()?.run)
            }
        };
        let is_fast = matches!(fuzz.traced, Traced::Here | Traced::Both(..));
        let (observers, host) = ((observer, ()), Link::open()?);
        let (names, clock) = (HashMap::new(), Clock::new(is_fast));
        Ok(Place { run, observers, parent: None, names, clock, host })
    }

    /// The host's name for the current input of the corpus, if there is one.
    fn current<S>(&mut self, state: &S) -> Result<Option<u64>, Error>
    where
        S: HasCorpus<I> + HasCurrentCorpusId,
    {
        let Some(id) = state.current_corpus_id()? else { return Ok(None) };
        if let Some(name) = self.names.get(&id) {
            return Ok(Some(*name));
        }
        let name = name(&state.corpus().cloned_input_for_id(id)?.to_bytes()?);
        self.names.insert(id, name);
        Ok(Some(name))
    }

    /// Sends an input that the stages have minimized to the host, in place of the original.
    pub(super) fn processed(&mut self, id: CorpusId, input: &I) -> Result<(), Error> {
        if let (Some(host), Some(old)) = (&self.host, self.names.get_mut(&id)) {
            let bytes = input.to_bytes()?;
            let new = name(&bytes);
            if new != *old {
                host.replaced(*old, &bytes)?;
                *old = new;
            }
        }
        Ok(())
    }

    pub(super) fn observer(&self) -> &SignalObserver {
        &self.observers.0
    }

    /// Keeps an input for the host in case that the kernel dies of it.
    fn keep(&mut self, input: &I) -> Result<(), Error> {
        if let Some(host) = &mut self.host {
            host.run(&input.to_bytes()?, self.parent);
        }
        Ok(())
    }
}

impl<EM, I, S, Z> Executor<EM, I, S, Z> for Place<'_, I>
where
    I: Input + Saved,
    S: HasExecutions + HasCorpus<I> + HasCurrentCorpusId,
{
    fn run_target(
        &mut self,
        _: &mut Z,
        state: &mut S,
        _: &mut EM,
        input: &I,
    ) -> Result<ExitKind, Error> {
        self.clock.tick(*state.executions(), self.host.as_ref())?;
        if self.host.is_some() {
            self.parent = self.current(state)?;
        }
        self.keep(input)?;
        *state.executions_mut() += 1;
        self.run.run(input, &mut |trace| self.observers.0.observe(trace))
    }
}

impl<I: Input + Saved> CompareExecutor<I> for Place<'_, I> {
    fn compare(
        &mut self,
        input: &I,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        self.keep(input)?;
        self.run.compare(input, look)
    }
}

impl<I> HasObservers for Place<'_, I> {
    type Observers = (SignalObserver, ());

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
