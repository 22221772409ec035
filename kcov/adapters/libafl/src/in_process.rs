//! Executions in this process.

use crate::compare::CompareExecutor;
use crate::{CoverageObserver, Sources, failed};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{Device, Owner, Session, Trace};
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;
use std::cell::RefCell;

/// Runs inputs in the calling thread, which is traced as long as the executor lives.
///
/// kcov costs one store per execution and no system call. But a harness that hangs, crashes or unmaps
/// memory takes the fuzzer with it; use [`Forked`](crate::Forked) for such harnesses. The thread is
/// traced between executions too; the next execution discards those records.
///
/// `O` gets the trace of each execution; `OT` are further observers of LibAFL.
#[derive(Debug)]
pub struct InProcess<F, O, OT = ()> {
    /// `None` only if the kernel refused to go on.
    session: Option<Session<TracePc>>,
    sources: Option<Sources>,
    harness: F,
    observers: (O, OT),
}

impl<F, O> InProcess<F, O> {
    /// Makes an executor and starts tracing this thread. `harness` runs an input and says how that
    /// ended.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable`].
    pub fn new(device: Device, observer: O, harness: F) -> Result<Self, kcov::Error> {
        let session = Some(device.into_session(TracePc)?);
        Ok(InProcess { session, sources: None, harness, observers: (observer, ()) })
    }
}

impl<F, O, OT> InProcess<F, O, OT> {
    /// The observer that gets the traces.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observers.0
    }

    /// Replaces the further observers of LibAFL.
    pub fn with_observers<OT2>(self, observers: OT2) -> InProcess<F, O, OT2> {
        let InProcess { session, sources, harness, observers: (observer, _) } = self;
        InProcess { session, sources, harness, observers: (observer, observers) }
    }

    /// Traces background work too. The observer gets its trace after the one of this thread.
    ///
    /// Needs Linux 7.2 or later.
    #[must_use]
    pub fn with_sources(self, sources: Sources) -> Self {
        InProcess { sources: Some(sources), ..self }
    }
}

/// Records the comparisons of what `run` executes.
fn compare<R>(
    session: &mut Option<Session<TracePc>>,
    run: impl FnOnce() -> R,
    mut look: impl FnMut(Trace<'_, TraceCmp>),
) -> Result<R, Error> {
    let ended = session.take().ok_or_else(not_traced)?.disable().map_err(failed)?;
    let mut device = ended.into_owner();
    let result = match device.enable(TraceCmp) {
        Ok(mut session) => {
            let (result, trace) = trace(&mut session, run);
            look(trace);
            session.disable().map_err(failed)?;
            Ok(result)
        }
        // For example, the kernel has no such mode. PCs go on.
        Err(refused) => Err(failed(refused)),
    };
    *session = Some(device.into_session(TracePc).map_err(failed)?);
    result
}

fn not_traced() -> Error {
    Error::illegal_state("this thread is no longer traced, because the kernel refused it")
}

/// Records only what `run` executes.
fn trace<M: Mode, D: Owner, R>(
    session: &mut Session<M, D>,
    run: impl FnOnce() -> R,
) -> (R, Trace<'_, M>) {
    session.reset();
    let result = run();
    (result, session.trace())
}

impl<F, O, OT, EM, I, S, Z> Executor<EM, I, S, Z> for InProcess<F, O, OT>
where
    F: FnMut(&I) -> ExitKind,
    O: CoverageObserver,
    S: HasExecutions,
{
    fn run_target(
        &mut self,
        _: &mut Z,
        state: &mut S,
        _: &mut EM,
        input: &I,
    ) -> Result<ExitKind, Error> {
        *state.executions_mut() += 1;
        let InProcess { session: Some(session), sources, harness, observers } = self else {
            return Err(not_traced());
        };
        let mut run = || {
            let (kind, trace) = trace(session, || harness(input));
            observers.0.observe(trace);
            kind
        };
        let Some(sources) = sources else { return Ok(run()) };
        let (kind, trace) = sources.trace(run)?;
        observers.0.observe(trace);
        Ok(kind)
    }
}

impl<F: FnMut(&I) -> ExitKind, O, OT, I> CompareExecutor<I> for InProcess<F, O, OT> {
    fn compare(
        &mut self,
        input: &I,
        look: impl FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let InProcess { session, sources, harness, .. } = self;
        // The thread's trace and the background's.
        let look = RefCell::new(look);
        let look = |trace: Trace<'_, TraceCmp>| look.borrow_mut()(trace);
        let mut run = || compare(session, || harness(input), look);
        match sources {
            Some(sources) => sources.compare(run, look)?,
            None => run(),
        }
    }
}

impl<F, O, OT> HasObservers for InProcess<F, O, OT> {
    type Observers = (O, OT);

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
