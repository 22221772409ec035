//! Executions in this process.

use crate::executor::{CompareExecutor, Observed, Run};
use crate::{Sources, failed};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{Device, Owner, Session, Trace};
use libafl::Error;
use libafl::executors::ExitKind;

/// Runs inputs in the calling thread, which is traced as long as the executor lives.
///
/// kcov costs one store per execution and no system call. But a harness that hangs, crashes or unmaps
/// memory takes the fuzzer with it; use [`Forked`](crate::Forked) for such harnesses. The thread is
/// traced between executions too; the next execution discards those records.
///
/// Traces background work too, or only that, if it has [`Sources`].
pub type InProcess<F, O, OT = ()> = Observed<Here<F>, O, OT>;

/// Runs inputs in this thread, for [`InProcess`].
#[derive(Debug)]
pub struct Here<F> {
    /// `None` if only background work is traced.
    thread: Option<Thread>,
    sources: Option<Sources>,
    harness: F,
}

impl<F, O> InProcess<F, O> {
    /// Makes an executor and starts tracing this thread. `harness` runs an input and says how that
    /// ended.
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable`].
    pub fn new(device: Device, observer: O, harness: F) -> Result<Self, kcov::Error> {
        let thread = Some(Thread(Some(device.into_session(TracePc)?)));
        Ok(Observed::by(Here { thread, sources: None, harness }, observer))
    }

    /// Makes an executor that traces only what the kernel does in the background.
    pub fn background(sources: Sources, observer: O, harness: F) -> Self {
        Observed::by(Here { thread: None, sources: Some(sources), harness }, observer)
    }

    /// Traces background work as well as this thread. The observer gets its trace after the one of
    /// the thread.
    ///
    /// Needs Linux 7.2 or later.
    #[must_use]
    pub fn with_sources(mut self, sources: Sources) -> Self {
        self.run.sources = Some(sources);
        self
    }
}

impl<F: FnMut(&I) -> ExitKind, I> Run<I> for Here<F> {
    fn run(
        &mut self,
        input: &I,
        observe: &mut dyn FnMut(Trace<'_, TracePc>),
    ) -> Result<ExitKind, Error> {
        let Here { thread, sources, harness } = self;
        let mut here = |observe: &mut dyn FnMut(Trace<'_, TracePc>)| match thread {
            Some(thread) => thread.trace(|| harness(input), observe),
            None => Ok(harness(input)),
        };
        match sources {
            Some(sources) => sources.trace(here, observe)?,
            None => here(observe),
        }
    }
}

impl<F: FnMut(&I) -> ExitKind, I> CompareExecutor<I> for Here<F> {
    fn compare(
        &mut self,
        input: &I,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let Here { thread, sources, harness } = self;
        let mut here = |look: &mut dyn FnMut(Trace<'_, TraceCmp>)| match thread {
            Some(thread) => thread.compare(|| harness(input), look),
            None => Ok(harness(input)),
        };
        match sources {
            Some(sources) => sources.compare(here, look)?,
            None => here(look),
        }
    }
}

/// This thread's session. `None` only if the kernel refused to go on.
#[derive(Debug)]
struct Thread(Option<Session<TracePc>>);

impl Thread {
    /// Records only what `run` executes.
    fn trace<R>(
        &mut self,
        run: impl FnOnce() -> R,
        observe: &mut dyn FnMut(Trace<'_, TracePc>),
    ) -> Result<R, Error> {
        Ok(trace(self.0.as_mut().ok_or_else(not_traced)?, run, observe))
    }

    /// Records the comparisons of what `run` executes.
    fn compare<R>(
        &mut self,
        run: impl FnOnce() -> R,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<R, Error> {
        let ended = self.0.take().ok_or_else(not_traced)?.disable().map_err(failed)?;
        let mut device = ended.into_owner();
        // The kernel may have no such mode. PCs go on.
        let result = device.enable(TraceCmp).map(|mut session| trace(&mut session, run, look));
        self.0 = Some(device.into_session(TracePc).map_err(failed)?);
        result.map_err(failed)
    }
}

fn trace<M: Mode, D: Owner, R>(
    session: &mut Session<M, D>,
    run: impl FnOnce() -> R,
    look: &mut dyn FnMut(Trace<'_, M>),
) -> R {
    session.reset();
    let result = run();
    look(session.trace());
    result
}

pub(crate) fn not_traced() -> Error {
    Error::illegal_state("nothing is traced any longer, because the kernel refused it")
}
