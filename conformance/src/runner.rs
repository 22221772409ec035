//! Runs each check in its own process, with a time limit on request. How long a check takes depends on
//! the load, so only the runner of the guest knows whether it hangs.

use crate::check::Check;
use crate::claims::Claims;
use nix::fcntl::OFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, pipe2, setpgid};
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::time::{Duration, Instant};

/// The end of a check's process.
#[derive(Debug)]
pub struct Outcome {
    /// The exit status, unless a signal ended the process.
    pub status: Option<i32>,
    /// The check's output, and the reason if it failed.
    pub message: String,
}

/// Output beyond this many bytes is dropped, because a console is slow.
const MOST_OUTPUT: usize = 16 << 10;
/// The exit status of a check that panicked. Its output gives the reason.
const PANICKED: i32 = 101;
/// The exit status of a process whose setup failed before the check.
const NOT_BEGUN: i32 = 69;

/// Runs a check in its own process. An error means that there is no verdict.
///
/// The process is a fork of this one, because starting the program for each check would take longer
/// than most checks. The calling process must have only one thread.
pub fn run(
    check: &Check,
    claims: &Claims,
    device: &Path,
    limit: Option<Duration>,
) -> io::Result<Outcome> {
    supervise(limit, || {
        check.run(claims, device, limit);
        0
    })
}

/// Forks a process that calls `body` and exits with the returned status. The calling process must
/// have only one thread.
pub fn supervise(limit: Option<Duration>, body: impl FnOnce() -> i32) -> io::Result<Outcome> {
    let end = limit.map(|limit| Instant::now() + limit);
    let (output, sender) = pipe2(OFlag::O_CLOEXEC)?;
    // SAFETY: the caller has no other thread that fork could interrupt. This module's
    // tests call only functions that are safe even then.
    let mut child = match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            // The child does the same, so the group exists before anyone can kill it.
            let _ = setpgid(child, child);
            Child { pid: child, status: None }
        }
        ForkResult::Child => {
            // Neither returns nor unwinds, because the caller's work belongs to the parent.
            let status = match stand_alone(sender) {
                Ok(()) => catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED),
                Err(_) => NOT_BEGUN,
            };
            // SAFETY: ends the process without running the parent's destructors and exit handlers.
            unsafe { libc::_exit(status) }
        }
    };
    drop(sender);

    let mut said = Said::new(output);
    let ended = wait(&mut child, &mut said, end);
    child.kill_group();
    let status = child.wait()?;
    let ended = ended?;
    // The pipe may still contain output of dead processes.
    while said.read_now()? {}

    let (status, verdict) = match ended {
        Some(WaitStatus::Exited(_, 0)) => (Some(0), None),
        Some(WaitStatus::Exited(_, NOT_BEGUN)) => {
            return Err(io::Error::other(format!("its process could not begin: {}", said.text())));
        }
        Some(WaitStatus::Exited(_, code)) => (Some(code), describe(status)),
        Some(status) => (None, describe(status)),
        None => {
            let seconds = limit.unwrap_or_default().as_secs_f32();
            let late = describe(status).unwrap_or_default();
            (None, Some(format!("killed after {seconds} s ({late})")))
        }
    };
    let mut message = said.text();
    if let Some(verdict) = verdict {
        message.push_str(&verdict);
    }
    Ok(Outcome { status, message: message.trim_end().to_owned() })
}

impl Outcome {
    /// Whether the check passed.
    pub fn passed(&self) -> bool {
        self.status == Some(0)
    }
}

/// Puts the forked process in its own group, without input and with output to the pipe.
fn stand_alone(output: OwnedFd) -> io::Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(&output)?;
    dup2_stderr(&output)?;
    Ok(())
}

/// Reads output until the child exits. Returns [`None`] if it has not by `end`.
fn wait(
    child: &mut Child,
    said: &mut Said,
    end: Option<Instant>,
) -> io::Result<Option<WaitStatus>> {
    // A process that the check left behind may keep the pipe open, so the end of the pipe proves
    // nothing. Poll for the child instead.
    const TURN: Duration = Duration::from_millis(10);
    // A process needs only a few instructions between closing the pipe and its exit, but a sleep
    // takes at least one tick.
    let mut yields = 100;
    let mut open = true;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if end.is_some_and(|end| Instant::now() >= end) {
            return Ok(None);
        }
        if !open && yields > 0 {
            yields -= 1;
            std::thread::yield_now();
        } else if !open {
            std::thread::sleep(Duration::from_millis(1));
        } else if said.wait(TURN)? {
            open = said.read()?;
        }
    }
}

/// The process of a check, which leads a group.
struct Child {
    pid: Pid,
    status: Option<WaitStatus>,
}

impl Child {
    fn try_wait(&mut self) -> io::Result<Option<WaitStatus>> {
        if self.status.is_none() {
            let status = waitpid(self.pid, Some(WaitPidFlag::WNOHANG))?;
            self.status = Some(status).filter(|status| *status != WaitStatus::StillAlive);
        }
        Ok(self.status)
    }

    fn wait(&mut self) -> io::Result<WaitStatus> {
        match self.status {
            Some(status) => Ok(status),
            None => Ok(waitpid(self.pid, None)?),
        }
    }

    fn kill_group(&self) {
        // An error is fine: it means that all processes of the group have exited.
        let _ = killpg(self.pid, Signal::SIGKILL);
    }
}

/// The description of an abnormal exit, besides the check's own output.
fn describe(status: WaitStatus) -> Option<String> {
    match status {
        WaitStatus::Exited(_, PANICKED) => None,
        WaitStatus::Exited(_, code) => Some(format!("the check ended with status {code}")),
        WaitStatus::Signaled(_, signal, _) => {
            let number = signal as i32;
            let cause = match signal {
                Signal::SIGSYS => ": the kernel lacks a system call that it made",
                _ => "",
            };
            Some(format!("the check was ended by {} ({number}){cause}", signal.as_str()))
        }
        other => Some(format!("the check ended with {other:?}")),
    }
}

/// The output of a check so far.
struct Said {
    pipe: OwnedFd,
    bytes: Vec<u8>,
    dropped: usize,
}

impl Said {
    fn new(pipe: OwnedFd) -> Said {
        Said { pipe, bytes: Vec::new(), dropped: 0 }
    }

    /// Whether there is something to read within this time, including the end of the pipe.
    fn wait(&self, time: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        match poll(&mut polled, time) {
            Err(nix::errno::Errno::EINTR) => Ok(false),
            result => Ok(result? > 0),
        }
    }

    /// Reads once. Returns whether more can follow.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let count = File::from(self.pipe.try_clone()?).read(&mut buffer)?;
        let room = (MOST_OUTPUT - self.bytes.len()).min(count);
        self.bytes.extend_from_slice(&buffer[..room]);
        self.dropped += count - room;
        Ok(count > 0)
    }

    /// Reads once without blocking. Returns whether to try again.
    fn read_now(&mut self) -> io::Result<bool> {
        Ok(self.wait(Duration::ZERO)? && self.read()?)
    }

    fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.bytes).into_owned();
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        if self.dropped > 0 {
            text.push_str(&format!("({} more bytes of output)\n", self.dropped));
        }
        text
    }
}

/// Tests the exits of check processes, with a shell in place of a check.
#[cfg(test)]
mod tests {
    use super::{MOST_OUTPUT, Outcome, supervise};
    use nix::unistd::execv;
    use std::ffi::CString;
    use std::time::{Duration, Instant};

    fn shell(script: &str, limit: Duration) -> Outcome {
        let words = ["/bin/sh", "-c", script].map(|word| CString::new(word).expect("no zero"));
        // Nothing here allocates between fork and exec: other tests run in other threads.
        supervise(Some(limit), || execv(&words[0], &words).map_or(127, |never| match never {}))
            .expect("a shell")
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_exit_status_is_the_verdict_and_output_is_none() {
        let outcome = shell("echo 'not ok 1 forged'; exit 0", LONG);
        assert!(outcome.passed());
        assert_eq!(outcome.message, "not ok 1 forged");
        let outcome = shell("echo 'ok 1 forged'; exit 101", LONG);
        assert!(!outcome.passed());
        assert_eq!(outcome.message, "ok 1 forged");
    }

    #[test]
    fn a_signal_is_a_failure_and_named() {
        let outcome = shell("kill -SEGV $$", LONG);
        assert!(!outcome.passed());
        assert_eq!(outcome.message, "the check was ended by SIGSEGV (11)");
        let outcome = shell("kill -SYS $$", LONG);
        assert!(outcome.message.ends_with(": the kernel lacks a system call that it made"));
    }

    #[test]
    fn at_the_limit_the_whole_group_is_killed() {
        let start = Instant::now();
        let outcome = shell("echo begun; sleep 60 & sleep 60", Duration::from_millis(300));
        assert!(!outcome.passed());
        assert!(outcome.message.starts_with("begun\nkilled after 0.3 s"), "{}", outcome.message);
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn what_a_check_leaves_behind_delays_nothing() {
        let start = Instant::now();
        let outcome = shell("sleep 60 & exit 0", LONG);
        assert!(outcome.passed());
        assert!(start.elapsed() < LONG);
    }

    #[test]
    fn a_flood_is_cut() {
        let outcome = shell("head -c 200000 /dev/zero | tr '\\0' x", LONG);
        assert!(outcome.passed());
        assert!(outcome.message.len() < MOST_OUTPUT + 100);
        assert!(outcome.message.ends_with("more bytes of output)"));
    }
}
