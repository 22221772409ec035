//! Executions in children.

use crate::executor::{CompareExecutor, Observed, Run};
use crate::failed;
use crate::fork::{Ended, Fork, Spawn};
use crate::report::Report;
use crate::server::{Records, Server};
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{Builder, ChildBuffer, Device, ErrorKind, Owner, Session, Trace};
use libafl::Error;
use libafl::executors::ExitKind;
use libafl::inputs::Input;
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
/// In a fuzzer with much memory, [`served`](Forked::served) forks faster.
pub type Forked<F, O, OT = (), C = Fork> = Observed<Children<F, C>, O, OT>;

/// Runs inputs in children, for [`Forked`].
#[derive(Debug)]
pub struct Children<F, C> {
    builder: Builder,
    /// `None` after an execution that may have damaged the device.
    buffer: Option<ChildBuffer<TracePc>>,
    spawn: C,
    limit: Duration,
    harness: F,
    report: Report,
    /// Whether a server forks the children.
    served: Option<Fork>,
    /// `None` without `served`, and while there is no buffer for a new one.
    server: Option<Server>,
}

/// The number of children to try before giving up on tracing. A child fails to enable tracing if an
/// earlier one left the device busy, or times out first on a slow machine.
const TRIES: usize = 5;

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
        let run = Children { builder, buffer, spawn, limit, harness, report, served, server };
        Ok(Observed::by(run, observer))
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
        self.run.served = Some(self.run.spawn.clone());
        self.run.serve()?;
        Ok(self)
    }
}

impl<F, C> Children<F, C> {
    /// Takes the buffer. Opens the device again if an execution has lost it.
    fn take_buffer<I>(&mut self) -> Result<ChildBuffer<TracePc>, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        if self.buffer.is_none() {
            // The server has the old buffer.
            self.server = None;
            self.buffer = Some(open(&self.builder)?);
        }
        if self.server.is_none() {
            self.serve()?;
        }
        self.buffer.take().ok_or_else(|| Error::illegal_state("there is no buffer"))
    }

    /// Starts a server for the buffer, if one forks the children.
    fn serve<I>(&mut self) -> Result<(), Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        let Children { buffer, harness, report, served: Some(fork), server, .. } = self else {
            return Ok(());
        };
        // A child that outlives its server must not report for a later one.
        *report = Report::new()?;
        let child = |records, input: &I| {
            let run = || harness(input);
            if let (Records::Pcs, Some(buffer)) = (records, &mut *buffer) {
                record(buffer.enable(), report, run);
            } else if let Some(buffer) = buffer.take() {
                // Never dropped, not even while unwinding: the harness may have put something else in
                // the place of buffer or descriptor.
                let mut device = ManuallyDrop::new(buffer.into_device());
                record(device.enable(TraceCmp), report, run);
            }
        };
        let decode = |bytes: &[u8]| postcard::from_bytes(bytes).ok();
        *server = Some(Server::start(fork.clone(), decode, child)?);
        Ok(())
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
    in_mode(builder.open().map_err(failed)?, TracePc)
}

fn in_mode<M: Mode>(device: Device, mode: M) -> Result<ChildBuffer<M>, Error> {
    device.into_child_buffer(mode).map_err(failed)
}

impl<F, C: Spawn> Children<F, C> {
    /// Runs an input in a child that records in the mode that `begin` returns; `end` returns to PCs.
    fn record<I, M: Mode>(
        &mut self,
        input: &I,
        records: Records,
        begin: impl Fn(ChildBuffer<TracePc>) -> Result<ChildBuffer<M>, Error>,
        end: impl Fn(ChildBuffer<M>) -> Result<ChildBuffer<TracePc>, Error>,
        look: &mut dyn FnMut(Trace<'_, M>),
    ) -> Result<ExitKind, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        let mut last = None;
        for _ in 0..TRIES {
            let mut buffer = begin(self.take_buffer()?)?;
            let ended = self.child(&mut buffer, records, input)?;
            let Some(returned) = self.report.read() else {
                last = ended;
                continue;
            };
            let kind = match ended {
                Some(Ended::Exited) => returned,
                Some(Ended::Signaled) => ExitKind::Crash,
                Some(Ended::TimedOut) => ExitKind::Timeout,
                // The server is gone. It may have left a child that still runs.
                None => return Ok(ExitKind::Crash),
            };
            match buffer.trace() {
                Ok(trace) => look(trace),
                // The child has truncated the device.
                Err(lost) if lost.kind() == ErrorKind::BufferLost => return Ok(kind),
                Err(error) => return Err(failed(error)),
            }
            self.buffer = Some(end(buffer)?);
            return Ok(kind);
        }
        let end = match last {
            Some(Ended::Exited) => "exited",
            Some(Ended::Signaled) => "was killed by a signal",
            Some(Ended::TimedOut) => "took too long",
            None => "killed the server",
        };
        let why = format!("none of {TRIES} children enabled tracing; the last one {end}");
        Err(Error::illegal_state(why))
    }

    /// Runs an input in one child. Returns `None` if the server is gone.
    fn child<I, M: Mode>(
        &mut self,
        buffer: &mut ChildBuffer<M>,
        records: Records,
        input: &I,
    ) -> Result<Option<Ended>, Error>
    where
        F: FnMut(&I) -> ExitKind,
        I: Input,
    {
        buffer.reset();
        self.report.clear();
        let Children { spawn, limit, harness, report, server, .. } = self;
        Ok(match server {
            None => {
                Some(spawn.spawn(*limit, || record(buffer.enable(), report, || harness(input)))?)
            }
            Some(server) => {
                let input = postcard::to_allocvec(input).map_err(failed)?;
                server.spawn(*limit, records, &input)?
            }
        })
    }
}

impl<F, C, I> Run<I> for Children<F, C>
where
    F: FnMut(&I) -> ExitKind,
    C: Spawn,
    I: Input,
{
    fn run(
        &mut self,
        input: &I,
        observe: &mut dyn FnMut(Trace<'_, TracePc>),
    ) -> Result<ExitKind, Error> {
        self.record(input, Records::Pcs, Ok, Ok, observe)
    }
}

impl<F, C, I> CompareExecutor<I> for Children<F, C>
where
    F: FnMut(&I) -> ExitKind,
    C: Spawn,
    I: Input,
{
    fn compare(
        &mut self,
        input: &I,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        let begin = |buffer: ChildBuffer<TracePc>| in_mode(buffer.into_device(), TraceCmp);
        let end = |buffer: ChildBuffer<TraceCmp>| in_mode(buffer.into_device(), TracePc);
        self.record(input, Records::Comparisons, begin, end, look)
    }
}
