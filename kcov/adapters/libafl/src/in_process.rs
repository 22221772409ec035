//! Executions in this process.

use crate::compare::CompareExecutor;
use crate::{CoverageObserver, failed};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{Device, Session, Trace};
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;

/// Runs inputs in the calling thread, which is traced as long as the executor lives.
///
/// An execution costs one store more than the harness itself, and the observer's work; the kernel
/// is asked for nothing. In exchange a harness that hangs, crashes or unmaps memory takes the fuzzer
/// with it; use [`Forked`](crate::Forked) for such harnesses. Between two executions the thread is
/// traced too, and the next execution discards these records.
///
/// `O` gets the trace of each execution; `OT` are further observers of LibAFL.
#[derive(Debug)]
pub struct InProcess<F, O, OT = ()> {
    /// `None` only if the kernel refused to go on.
    session: Option<Session<TracePc>>,
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
        Ok(InProcess { session, harness, observers: (observer, ()) })
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
        let InProcess { session, harness, observers: (observer, _) } = self;
        InProcess { session, harness, observers: (observer, observers) }
    }

    /// Traces this thread in comparison mode for as long as `run` takes.
    fn in_comparison_mode(
        &mut self,
        run: impl FnOnce(&mut F, &mut Session<TraceCmp>),
    ) -> Result<(), Error> {
        let session = self.session.take().ok_or_else(not_traced)?;
        let device = session.disable().map_err(failed)?;
        let (device, result) = match device.into_session(TraceCmp) {
            Ok(mut session) => {
                run(&mut self.harness, &mut session);
                (session.disable().map_err(failed)?, Ok(()))
            }
            Err(refused) => {
                let error = failed(&refused);
                (refused.into_device(), Err(error))
            }
        };
        self.session = Some(device.into_session(TracePc).map_err(failed)?);
        result
    }
}

fn not_traced() -> Error {
    Error::illegal_state("this thread is no longer traced, because the kernel refused it")
}

/// Records only what `run` executes.
fn trace<M: Mode, R>(session: &mut Session<M>, run: impl FnOnce() -> R) -> (R, Trace<'_, M>) {
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
        let InProcess { session: Some(session), harness, observers } = self else {
            return Err(not_traced());
        };
        let (kind, trace) = trace(session, || harness(input));
        observers.0.observe(trace);
        Ok(kind)
    }
}

impl<F: FnMut(&I) -> ExitKind, O, OT, I> CompareExecutor<I> for InProcess<F, O, OT> {
    fn compare(
        &mut self,
        input: &I,
        look: impl FnOnce(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let mut kind = ExitKind::Ok;
        self.in_comparison_mode(|harness, session| {
            let (ended, trace) = trace(session, || harness(input));
            kind = ended;
            look(trace);
        })?;
        Ok(kind)
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
