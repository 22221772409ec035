//! Executions whose code runs in the kernel's background.

use crate::compare::CompareExecutor;
use crate::{CoverageObserver, failed};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::remote::linux::{Remote, RemoteSession};
use kcov::{Device, Trace};
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;
use std::time::Duration;

/// Runs inputs in this thread and traces what the kernel does for them in the background: on a USB
/// bus, in vhost workers or in the workers of io_uring. Needs Linux.
///
/// The kernel does not tell when background work ends, so an execution waits until no record has
/// come for a while. Work that takes longer counts for the next input.
///
/// `O` gets the trace of each execution; `OT` are further observers of LibAFL.
#[derive(Debug)]
pub struct Background<F, O, OT = ()> {
    /// `None` only if the kernel refused to go on.
    session: Option<RemoteSession<TracePc>>,
    sources: Remote,
    quiet: Duration,
    limit: Duration,
    harness: F,
    observers: (O, OT),
}

impl<F, O> Background<F, O> {
    /// How long no record comes after the end of the work, unless
    /// [`with_quiet`](Self::with_quiet) says otherwise.
    pub const QUIET: Duration = Duration::from_millis(5);

    /// How long to wait for the end of the work, unless [`with_quiet`](Self::with_quiet) says
    /// otherwise.
    pub const LIMIT: Duration = Duration::from_secs(1);

    /// Makes an executor and starts tracing these sources. `harness` runs an input and says how
    /// that ended.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable_remote`].
    pub fn new(
        device: Device,
        sources: Remote,
        observer: O,
        harness: F,
    ) -> Result<Self, kcov::Error> {
        let session = Some(device.into_remote_session(TracePc, &sources)?);
        let (quiet, limit) = (Self::QUIET, Self::LIMIT);
        Ok(Background { session, sources, quiet, limit, harness, observers: (observer, ()) })
    }
}

impl<F, O, OT> Background<F, O, OT> {
    /// Waits until no record has come for `quiet`, for `limit` at most.
    #[must_use]
    pub fn with_quiet(self, quiet: Duration, limit: Duration) -> Self {
        Background { quiet, limit, ..self }
    }

    /// Replaces the further observers of LibAFL.
    pub fn with_observers<OT2>(self, observers: OT2) -> Background<F, O, OT2> {
        let Background { session, sources, quiet, limit, harness, observers: (observer, _) } = self;
        let observers = (observer, observers);
        Background { session, sources, quiet, limit, harness, observers }
    }

    /// The observer that gets the traces.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observers.0
    }
}

fn not_traced() -> Error {
    Error::illegal_state("the background is no longer traced, because the kernel refused it")
}

/// Records the background work of what `run` does.
fn trace<M: Mode, R>(
    session: &mut RemoteSession<M>,
    (quiet, limit): (Duration, Duration),
    run: impl FnOnce() -> R,
) -> Result<(R, Trace<'_, M>), Error> {
    // Work of the input before may go on.
    session.settle(quiet, limit);
    let trace = session.trace();
    if trace.len() > trace.capacity() / 2 {
        session.restart().map_err(failed)?;
    }
    let mark = session.mark();
    let result = run();
    session.settle(quiet, limit);
    Ok((result, session.since(mark)))
}

impl<F, O, OT, EM, I, S, Z> Executor<EM, I, S, Z> for Background<F, O, OT>
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
        let session = self.session.as_mut().ok_or_else(not_traced)?;
        let harness = &mut self.harness;
        let (kind, trace) = trace(session, (self.quiet, self.limit), || harness(input))?;
        self.observers.0.observe(trace);
        Ok(kind)
    }
}

impl<F: FnMut(&I) -> ExitKind, O, OT, I> CompareExecutor<I> for Background<F, O, OT> {
    fn compare(
        &mut self,
        input: &I,
        look: impl FnOnce(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let session = self.session.take().ok_or_else(not_traced)?;
        let device = session.disable().map_err(failed)?;
        let (device, result) = match device.into_remote_session(TraceCmp, &self.sources) {
            Ok(mut session) => {
                let harness = &mut self.harness;
                let traced = trace(&mut session, (self.quiet, self.limit), || harness(input));
                let result = traced.map(|(kind, trace)| {
                    look(trace);
                    kind
                });
                (session.disable().map_err(failed)?, result)
            }
            Err(refused) => {
                let error = failed(&refused);
                (refused.into_device(), Err(error))
            }
        };
        let session = device.into_remote_session(TracePc, &self.sources);
        self.session = Some(session.map_err(failed)?);
        result
    }
}

impl<F, O, OT> HasObservers for Background<F, O, OT> {
    type Observers = (O, OT);

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
