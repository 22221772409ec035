//! Executions whose code runs in the kernel's background.

use crate::failed;
use crate::in_process::not_traced;
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::remote::{RemoteSession, linux::Remote};
use kcov::{Completeness, Device, Owner, Trace};
use libafl::Error;
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
    wait: Wait,
}

/// How long to wait without a new record before the work counts as finished, and how long at most.
type Wait = (Duration, Duration);

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
        Ok(Sources { session, remote, wait: (Self::QUIET, Self::LIMIT) })
    }

    /// Waits until no record has come for `quiet`, for `limit` at most. If the harness itself waits
    /// for the work that it causes, zero does.
    #[must_use]
    pub fn with_quiet(self, quiet: Duration, limit: Duration) -> Sources {
        Sources { wait: (quiet, limit), ..self }
    }

    /// Records the background work of what `run` does. `run` gets `observe`, too.
    pub(crate) fn trace<R>(
        &mut self,
        run: impl FnOnce(&mut dyn FnMut(Trace<'_, TracePc>)) -> R,
        observe: &mut dyn FnMut(Trace<'_, TracePc>),
    ) -> Result<R, Error> {
        trace(self.session.as_mut().ok_or_else(not_traced)?, self.wait, run, observe)
    }

    /// Same as [`trace`](Self::trace), in comparison mode.
    pub(crate) fn compare<R>(
        &mut self,
        run: impl FnOnce(&mut dyn FnMut(Trace<'_, TraceCmp>)) -> R,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<R, Error> {
        let ended = self.session.take().ok_or_else(not_traced)?.disable().map_err(failed)?;
        let mut device = ended.into_owner();
        let result = match device.enable_remote(TraceCmp, &self.remote) {
            Ok(mut session) => trace(&mut session, self.wait, run, look),
            // For example, the kernel has no such mode. PCs go on.
            Err(refused) => Err(failed(refused)),
        };
        let session = device.into_remote_session(TracePc, &self.remote);
        self.session = Some(session.map_err(failed)?);
        result
    }
}

/// Records the background work of what `run` does.
fn trace<M: Mode, D: Owner, R>(
    session: &mut RemoteSession<M, D>,
    (quiet, limit): Wait,
    run: impl FnOnce(&mut dyn FnMut(Trace<'_, M>)) -> R,
    look: &mut dyn FnMut(Trace<'_, M>),
) -> Result<R, Error> {
    // Work of the input before may go on.
    session.settle(quiet, end(limit));
    let trace = session.trace();
    // A target may have stored a count that leaves no room for records until it is cleared.
    let is_corrupt = matches!(trace.completeness(), Completeness::Corrupt { .. });
    if is_corrupt || trace.len() > trace.capacity() / 2 {
        session.restart().map_err(failed)?;
    }
    let mark = session.mark();
    let result = run(look);
    session.settle(quiet, end(limit));
    let trace = session.since(mark);
    look(trace.ok_or_else(|| Error::illegal_state("the mark is of another session"))?);
    Ok(result)
}

/// The end of a time that begins now. One that cannot be represented is centuries away.
fn end(limit: Duration) -> Instant {
    const CENTURY: Duration = Duration::from_secs(3_155_760_000);
    Instant::now() + limit.min(CENTURY)
}
