//! Child processes with a time limit.

use crate::sys;
use rustix::process::{
    Pid, Signal, WaitOptions, WaitStatus, kill_process, kill_process_group, setpgid, waitpid,
};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// By itself, with any status.
    Exited,
    /// By a signal.
    Signaled,
    /// By `SIGKILL`, because its time was over.
    TimedOut,
}

/// Runs code in a child process and waits until the child has ended.
///
/// A test may implement this without a process, together with kcov's fake kernel.
pub trait Spawn {
    /// Runs `child` in a child, for `limit` at most.
    ///
    /// # Errors
    ///
    /// Fails if there can be no child, or if the child cannot be killed.
    fn spawn(&mut self, limit: Duration, child: impl FnOnce()) -> io::Result<Ended>;
}

/// Children by fork(2), each the leader of a process group. When the leader has ended, the other
/// processes of the group are killed.
#[derive(Clone, Debug)]
pub struct Fork(());

impl Fork {
    /// How long a child may take to die. A kernel that reports blocked tasks has done so before.
    const DEATH: Duration = Duration::from_secs(60);

    /// Allows forking.
    ///
    /// # Safety
    ///
    /// The caller must ensure that the process has one thread whenever it forks. Otherwise the code
    /// that runs in the child must be restricted to what fork(2) allows after the fork of a process
    /// with several threads. A [server](crate::Forked::served) allocates, so it takes one thread, or
    /// a C library that allows allocation there.
    #[must_use]
    pub unsafe fn new() -> Fork {
        Fork(())
    }

    /// Starts a child that runs `body` and ends.
    pub(crate) fn process(&self, body: impl FnOnce()) -> io::Result<Pid> {
        // SAFETY: the caller of `new` ensured that the child may run this code.
        match unsafe { libc::fork() } {
            0 => run_and_exit(body),
            pid => Pid::from_raw(pid).filter(|_| pid > 0).ok_or_else(io::Error::last_os_error),
        }
    }
}

impl Spawn for Fork {
    fn spawn(&mut self, limit: Duration, child: impl FnOnce()) -> io::Result<Ended> {
        watch(self.process(child)?, limit)
    }
}

/// The life of a child. It never returns to the caller's code.
fn run_and_exit(child: impl FnOnce()) -> ! {
    let _ = setpgid(None, None);
    if catch_unwind(AssertUnwindSafe(child)).is_err() {
        std::process::abort();
    }
    // SAFETY: `_exit` ends the process at once, without running the parent's exit handlers.
    unsafe { libc::_exit(0) }
}

fn watch(child: Pid, limit: Duration) -> io::Result<Ended> {
    let in_time = sys::has_ended(child, limit);
    // Before reaping, so the number still is the child's.
    let _ = kill_process_group(child, Signal::KILL);
    if !matches!(in_time, Ok(true)) {
        kill_process(child, Signal::KILL)?;
        if matches!(sys::has_ended(child, Fork::DEATH), Ok(false)) {
            let why = format!("process {child:?} does not die: a system call of it hangs");
            return Err(io::Error::other(why));
        }
    }
    let signaled = reap(child)?.is_some_and(WaitStatus::signaled);
    Ok(match (in_time?, signaled) {
        (false, _) => Ended::TimedOut,
        (true, true) => Ended::Signaled,
        (true, false) => Ended::Exited,
    })
}

/// Waits for the end of a child.
pub(crate) fn reap(child: Pid) -> io::Result<Option<WaitStatus>> {
    loop {
        match waitpid(Some(child), WaitOptions::empty()) {
            Err(rustix::io::Errno::INTR) => {}
            ended => return Ok(ended?.map(|(_, status)| status)),
        }
    }
}
