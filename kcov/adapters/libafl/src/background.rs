//! Executions whose code runs in the kernel's background.

use crate::compare::CompareExecutor;
use crate::{CoverageObserver, failed};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::remote::{RemoteSession, linux::Remote};
use kcov::{Completeness, Device, Owner, Trace};
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;
use std::time::{Duration, Instant};

/// Sources of background work and the device that records it: a USB bus, vhost workers, the workers
/// of io_uring, or whatever a driver marks with a common handle. Needs Linux.
///
/// The kernel does not tell when background work ends, so an execution waits until no record has
/// come for a while. Work that takes longer counts for the next input.
#[derive(Debug)]
pub struct Sources {
    /// `None` only if the kernel refused to go on.
    session: Option<RemoteSession<TracePc>>,
    remote: Remote,
    quiet: Duration,
    limit: Duration,
}

impl Sources {
    /// How long to wait without a new record before the work counts as finished, unless
    /// [`with_quiet`](Self::with_quiet) says otherwise.
    pub const QUIET: Duration = Duration::from_millis(5);

    /// How long to wait for the end of the work, unless [`with_quiet`](Self::with_quiet) says
    /// otherwise.
    pub const LIMIT: Duration = Duration::from_secs(1);

    /// Starts tracing these sources.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable_remote`].
    pub fn new(device: Device, remote: Remote) -> Result<Sources, kcov::Error> {
        let session = Some(device.into_remote_session(TracePc, &remote)?);
        Ok(Sources { session, remote, quiet: Self::QUIET, limit: Self::LIMIT })
    }

    /// Waits until no record has come for `quiet`, for `limit` at most. If the harness itself waits
    /// for the work that it causes, zero does.
    #[must_use]
    pub fn with_quiet(self, quiet: Duration, limit: Duration) -> Sources {
        Sources { quiet, limit, ..self }
    }

    /// Records the background work of what `run` does.
    pub(crate) fn trace<R>(
        &mut self,
        run: impl FnOnce() -> R,
    ) -> Result<(R, Trace<'_, TracePc>), Error> {
        let session = self.session.as_mut().ok_or_else(not_traced)?;
        trace(session, (self.quiet, self.limit), run)
    }

    /// Same as [`trace`](Self::trace), in comparison mode.
    pub(crate) fn compare<R>(
        &mut self,
        run: impl FnOnce() -> R,
        mut look: impl FnMut(Trace<'_, TraceCmp>),
    ) -> Result<R, Error> {
        let session = self.session.take().ok_or_else(not_traced)?;
        let mut device = session.disable().map_err(failed)?.into_owner();
        let result = match device.enable_remote(TraceCmp, &self.remote) {
            Ok(mut session) => {
                let traced = trace(&mut session, (self.quiet, self.limit), run);
                let result = traced.map(|(result, trace)| {
                    look(trace);
                    result
                });
                session.disable().map_err(failed)?;
                result
            }
            // For example, the kernel has no such mode. PCs go on.
            Err(refused) => Err(failed(refused)),
        };
        let session = device.into_remote_session(TracePc, &self.remote);
        self.session = Some(session.map_err(failed)?);
        result
    }
}

fn not_traced() -> Error {
    Error::illegal_state("the background is no longer traced, because the kernel refused it")
}

/// Records the background work of what `run` does.
fn trace<M: Mode, D: Owner, R>(
    session: &mut RemoteSession<M, D>,
    (quiet, limit): (Duration, Duration),
    run: impl FnOnce() -> R,
) -> Result<(R, Trace<'_, M>), Error> {
    // Work of the input before may go on.
    session.settle(quiet, end(limit));
    let trace = session.trace();
    // A target may have stored a count that leaves no room for records until it is cleared.
    let is_corrupt = matches!(trace.completeness(), Completeness::Corrupt { .. });
    if is_corrupt || trace.len() > trace.capacity() / 2 {
        session.restart().map_err(failed)?;
    }
    let mark = session.mark();
    let result = run();
    session.settle(quiet, end(limit));
    let trace = session.since(mark);
    Ok((result, trace.ok_or_else(|| Error::illegal_state("the mark is of another session"))?))
}

/// The end of a time that begins now. One that cannot be represented is centuries away.
fn end(limit: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(3_155_760_000);
    Instant::now() + limit.min(CENTURY)
}

/// Runs inputs in this thread and traces only what the kernel does for them in the background. To
/// trace the thread as well, see [`InProcess::with_sources`](crate::InProcess::with_sources).
///
/// `O` gets the trace of each execution; `OT` are further observers of LibAFL.
#[derive(Debug)]
pub struct Background<F, O, OT = ()> {
    sources: Sources,
    harness: F,
    observers: (O, OT),
}

impl<F, O> Background<F, O> {
    /// Makes an executor. `harness` runs an input and says how that ended.
    #[must_use]
    pub fn new(sources: Sources, observer: O, harness: F) -> Self {
        Background { sources, harness, observers: (observer, ()) }
    }
}

impl<F, O, OT> Background<F, O, OT> {
    /// Replaces the further observers of LibAFL.
    pub fn with_observers<OT2>(self, observers: OT2) -> Background<F, O, OT2> {
        let Background { sources, harness, observers: (observer, _) } = self;
        Background { sources, harness, observers: (observer, observers) }
    }

    /// The observer that gets the traces.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observers.0
    }
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
        let harness = &mut self.harness;
        let (kind, trace) = self.sources.trace(|| harness(input))?;
        self.observers.0.observe(trace);
        Ok(kind)
    }
}

impl<F: FnMut(&I) -> ExitKind, O, OT, I> CompareExecutor<I> for Background<F, O, OT> {
    fn compare(
        &mut self,
        input: &I,
        look: impl FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let harness = &mut self.harness;
        self.sources.compare(|| harness(input), look)
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
