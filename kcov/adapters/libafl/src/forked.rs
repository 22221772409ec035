//! Executions in children.

use crate::compare::CompareExecutor;
use crate::fork::{Ended, Fork, Spawn};
use crate::report::Report;
use crate::server::{Records, Server};
use crate::{CoverageObserver, failed};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{Builder, ChildBuffer, ErrorKind, Owner, Session, Trace};
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers, HasTimeout, SetTimeout};
use libafl::inputs::Input;
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;
use std::mem::ManuallyDrop;
use std::time::Duration;

/// Runs each input in a forked child that is traced into a buffer of this process.
///
/// The child may die, hang, execute another program, close every descriptor, or unmap or truncate
/// the device: this process survives, and the next execution is right. A child that ended by a
/// signal is a [`Crash`](ExitKind::Crash), one that took too long a [`Timeout`](ExitKind::Timeout);
/// the exit status means nothing. If the harness returns, its own verdict counts.
///
/// A child that truncates the device loses its trace, and the executor opens the device again. The
/// end of tracing kills a child that truncated or unmapped the buffer: a crash. Processes that left
/// the child's process group run on and can still harm the device.
///
/// In a fuzzer with much memory, [`served`](Self::served) forks faster.
///
/// `O` gets the trace of each execution; `OT` are further observers of LibAFL.
#[derive(Debug)]
pub struct Forked<F, O, OT = (), C = Fork> {
    builder: Builder,
    /// `None` after an execution that may have damaged the device.
    buffer: Option<ChildBuffer<TracePc>>,
    children: Children<F, C>,
    observers: (O, OT),
}

/// All that it takes to run an input in a child, except for the buffer.
#[derive(Debug)]
struct Children<F, C> {
    spawn: C,
    limit: Duration,
    harness: F,
    report: Report,
    /// Whether a server forks the children.
    served: Option<Fork>,
    /// `None` without `served`, and while there is no buffer for a new one.
    server: Option<Server>,
}

/// How an execution went.
enum Outcome {
    /// The buffer has its trace, unless the child truncated the device.
    Ended(ExitKind),
    /// The server was killed.
    Lost(ExitKind),
    /// The child ended without enabling tracing. `None` if the server is gone.
    Untraced(Option<Ended>),
}

/// The number of children to try before giving up on tracing. A child fails to enable tracing if an
/// earlier one left the device busy, or times out first on a slow machine.
const TRIES: usize = 5;

/// The error when no child enabled tracing.
fn untraced(last: Option<Ended>) -> Error {
    let end = match last {
        Some(Ended::Exited) => "exited",
        Some(Ended::Signaled) => "was killed by a signal",
        Some(Ended::TimedOut) => "took too long",
        None => "killed the server",
    };
    Error::illegal_state(format!("none of {TRIES} children enabled tracing; the last one {end}"))
}

impl<F, O, C: Spawn> Forked<F, O, (), C> {
    /// Makes an executor and opens its device. `harness` runs an input in a child, for `limit` at
    /// most, and says how that ended.
    ///
    /// The executor adds [`not_inherited`](Builder::not_inherited), because fork(2) copies the page
    /// tables of what children inherit. A [high descriptor](Builder::min_fd) keeps the device away
    /// from those that inputs name.
    ///
    /// # Errors
    ///
    /// Fails if the device cannot be opened or enabled, or if there is no memory.
    pub fn new(
        spawn: C,
        builder: Builder,
        limit: Duration,
        observer: O,
        harness: F,
    ) -> Result<Self, Error> {
        let buffer = Some(open(&builder)?);
        let (report, served, server) = (Report::new()?, None, None);
        let children = Children { spawn, limit, harness, report, served, server };
        Ok(Forked { builder, buffer, children, observers: (observer, ()) })
    }
}

impl<F, O, OT, C> Forked<F, O, OT, C> {
    /// The observer that gets the traces.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observers.0
    }

    /// Replaces the further observers of LibAFL.
    pub fn with_observers<OT2>(self, observers: OT2) -> Forked<F, O, OT2, C> {
        let Forked { builder, buffer, children, observers: (observer, _) } = self;
        Forked { builder, buffer, children, observers: (observer, observers) }
    }

    /// Takes the buffer. Opens the device again if an execution has lost it.
    fn take_buffer<I>(&mut self) -> Result<ChildBuffer<TracePc>, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        if self.buffer.is_none() {
            // The server has the old buffer.
            self.children.server = None;
            self.buffer = Some(open(&self.builder)?);
        }
        if let Children { served: Some(fork), server: None, .. } = &self.children {
            let fork = fork.clone();
            self.serve(fork)?;
        }
        self.buffer.take().ok_or_else(|| Error::illegal_state("there is no buffer"))
    }

    /// Starts a server for the buffer.
    fn serve<I>(&mut self, fork: Fork) -> Result<(), Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        let Forked { buffer, children: Children { harness, report, server, .. }, .. } = self;
        // A child that outlives its server must not report for a later one.
        *report = Report::new()?;
        let child = |records, input: &[u8]| {
            let Ok(input) = postcard::from_bytes(input) else { return };
            let run = || harness(&input);
            match records {
                Records::Pcs => {
                    if let Some(buffer) = buffer {
                        record(buffer.enable(), report, run);
                    }
                }
                Records::Comparisons => {
                    if let Some(buffer) = buffer.take() {
                        // Never dropped, not even while unwinding: the harness may have put
                        // something else in the place of buffer or descriptor.
                        let mut device = ManuallyDrop::new(buffer.into_device());
                        record(device.enable(TraceCmp), report, run);
                    }
                }
            }
        };
        *server = Some(Server::start(fork, child)?);
        Ok(())
    }
}

impl<F, O, OT> Forked<F, O, OT> {
    /// Forks a server now, which then forks all children. fork(2) takes longer in a process with more
    /// memory, and a fuzzer's memory grows while the server's stays small.
    ///
    /// Children start from this process's memory as it is now. They get each input as bytes.
    ///
    /// # Errors
    ///
    /// Fails if the server cannot be forked, or if there is no memory.
    pub fn served<I>(mut self) -> Result<Self, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        let fork = self.children.spawn.clone();
        self.children.served = Some(fork.clone());
        self.serve(fork)?;
        Ok(self)
    }
}

/// In a child: runs the harness if the thread is traced.
fn record<M: Mode>(
    session: Result<Session<M, impl Owner>, kcov::Error>,
    report: &Report,
    run: impl FnOnce() -> ExitKind,
) {
    if let Ok(_session) = session {
        report.enabled();
        report.returned(run());
    }
}

fn open(builder: &Builder) -> Result<ChildBuffer<TracePc>, Error> {
    // SAFETY: children only enable the device and end the session: they make no trace.
    let builder = unsafe { builder.clone().not_inherited() };
    let device = builder.open().map_err(failed)?;
    device.into_child_buffer(TracePc).map_err(failed)
}

/// The trace, or `None` if a child has truncated the device.
fn readable<T>(trace: Result<T, kcov::Error>) -> Result<Option<T>, Error> {
    match trace {
        Ok(trace) => Ok(Some(trace)),
        Err(lost) if lost.kind() == ErrorKind::BufferLost => Ok(None),
        Err(error) => Err(failed(error)),
    }
}

impl<F, C: Spawn> Children<F, C> {
    fn run<I, M: Mode>(
        &mut self,
        buffer: &mut ChildBuffer<M>,
        records: Records,
        input: &I,
    ) -> Result<Outcome, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        buffer.reset();
        self.report.clear();
        let Children { spawn, limit, harness, report, server, .. } = self;
        let ended = match server {
            None => {
                Some(spawn.spawn(*limit, || record(buffer.enable(), report, || harness(input)))?)
            }
            Some(server) => {
                let input = postcard::to_allocvec(input).map_err(failed)?;
                server.spawn(*limit, records, &input)?
            }
        };
        let Some(returned) = report.read() else { return Ok(Outcome::Untraced(ended)) };
        let kind = match ended {
            Some(Ended::Exited) => returned,
            Some(Ended::Signaled) | None => ExitKind::Crash,
            Some(Ended::TimedOut) => ExitKind::Timeout,
        };
        // A server that is gone may have left a child that still runs.
        Ok(if ended.is_some() { Outcome::Ended(kind) } else { Outcome::Lost(kind) })
    }
}

impl<F, O, OT, C, EM, I, S, Z> Executor<EM, I, S, Z> for Forked<F, O, OT, C>
where
    F: FnMut(&I) -> ExitKind,
    O: CoverageObserver,
    C: Spawn,
    I: Input,
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
        let mut last = None;
        for _ in 0..TRIES {
            let mut buffer = self.take_buffer()?;
            match self.children.run(&mut buffer, Records::Pcs, input)? {
                Outcome::Ended(kind) => {
                    if let Some(trace) = readable(buffer.trace())? {
                        self.observers.0.observe(trace);
                        self.buffer = Some(buffer);
                    }
                    return Ok(kind);
                }
                Outcome::Lost(kind) => return Ok(kind),
                Outcome::Untraced(ended) => last = ended,
            }
        }
        Err(untraced(last))
    }
}

impl<F, O, OT, C, I> CompareExecutor<I> for Forked<F, O, OT, C>
where
    F: FnMut(&I) -> ExitKind,
    C: Spawn,
    I: Input,
{
    fn compare(
        &mut self,
        input: &I,
        mut look: impl FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let mut last = None;
        for _ in 0..TRIES {
            let device = self.take_buffer()?.into_device();
            let mut buffer = device.into_child_buffer(TraceCmp).map_err(failed)?;
            match self.children.run(&mut buffer, Records::Comparisons, input)? {
                Outcome::Ended(kind) => {
                    if let Some(trace) = readable(buffer.trace())? {
                        look(trace);
                        let device = buffer.into_device();
                        self.buffer = Some(device.into_child_buffer(TracePc).map_err(failed)?);
                    }
                    return Ok(kind);
                }
                Outcome::Lost(kind) => return Ok(kind),
                Outcome::Untraced(ended) => last = ended,
            }
        }
        Err(untraced(last))
    }
}

impl<F, O, OT, C> HasTimeout for Forked<F, O, OT, C> {
    fn timeout(&self) -> Duration {
        self.children.limit
    }
}

impl<F, O, OT, C> SetTimeout for Forked<F, O, OT, C> {
    fn set_timeout(&mut self, timeout: Duration) {
        self.children.limit = timeout;
    }
}

impl<F, O, OT, C> HasObservers for Forked<F, O, OT, C> {
    type Observers = (O, OT);

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
