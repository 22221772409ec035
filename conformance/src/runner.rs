//! Runs each check in its own process, with a time limit on request. How long a check takes depends on
//! the load, so only the runner of the guest knows whether it hangs.

use nix::sys::signal::{Signal, killpg};
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, dup2_stderr, dup2_stdin, dup2_stdout, fork, setpgid};
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::panic::{AssertUnwindSafe, catch_unwind};
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
const MOST_OUTPUT: u64 = 16 << 10;
/// The exit status of a check that panicked. Its output gives the reason.
const PANICKED: i32 = 101;
/// The exit status of a process whose setup failed before the check.
const NOT_BEGUN: i32 = 69;

/// Forks a process that calls `body` and exits with the returned status. An error means that there
/// is no verdict. The calling process must have only one thread.
///
/// A fork takes less time than most checks; starting the program again for each one would not.
pub fn supervise(limit: Option<Duration>, body: impl FnOnce() -> i32) -> io::Result<Outcome> {
    let end = limit.map(|limit| Instant::now() + limit);
    let output = tempfile::tempfile()?;
    // SAFETY: the caller has no other thread that fork could interrupt. This module's
    // tests call only functions that are safe even then.
    let child = match unsafe { fork() }? {
        ForkResult::Parent { child } => {
            // The child does the same, so the group exists before anyone can kill it.
            let _ = setpgid(child, child);
            child
        }
        ForkResult::Child => {
            // Neither returns nor unwinds, because the caller's work belongs to the parent.
            let status = match stand_alone(&output) {
                Ok(()) => catch_unwind(AssertUnwindSafe(body)).unwrap_or(PANICKED),
                Err(_) => NOT_BEGUN,
            };
            // SAFETY: ends the process without running the parent's destructors and exit handlers.
            unsafe { libc::_exit(status) }
        }
    };
    let ended = wait(child, end);
    // An error is fine: it means that all processes of the group have exited.
    let _ = killpg(child, Signal::SIGKILL);
    let (status, verdict) = match ended? {
        Some(WaitStatus::Exited(_, NOT_BEGUN)) => {
            return Err(io::Error::other(format!(
                "its process could not begin: {}",
                text(output)?
            )));
        }
        Some(WaitStatus::Exited(_, 0)) => (Some(0), None),
        Some(status @ WaitStatus::Exited(_, code)) => (Some(code), describe(status)),
        Some(status) => (None, describe(status)),
        None => {
            let seconds = limit.unwrap_or_default().as_secs_f32();
            let late = describe(waitpid(child, None)?).unwrap_or_default();
            (None, Some(format!("killed after {seconds} s ({late})")))
        }
    };
    let message = text(output)? + &verdict.unwrap_or_default();
    Ok(Outcome { status, message: message.trim_end().to_owned() })
}

impl Outcome {
    pub fn passed(&self) -> bool {
        self.status == Some(0)
    }
}

/// Puts the forked process in its own group, without input and with output to the file.
fn stand_alone(output: &File) -> io::Result<()> {
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    dup2_stdin(File::open("/dev/null")?)?;
    dup2_stdout(output)?;
    dup2_stderr(output)?;
    Ok(())
}

/// Waits until the child exits. Returns [`None`] if it has not by `end`.
fn wait(child: Pid, end: Option<Instant>) -> io::Result<Option<WaitStatus>> {
    let Some(end) = end else { return Ok(Some(waitpid(child, None)?)) };
    loop {
        match waitpid(child, Some(WaitPidFlag::WNOHANG))? {
            WaitStatus::StillAlive if Instant::now() >= end => return Ok(None),
            WaitStatus::StillAlive => std::thread::sleep(Duration::from_millis(1)),
            status => return Ok(Some(status)),
        }
    }
}

/// The description of an abnormal exit, besides the check's own output.
fn describe(status: WaitStatus) -> Option<String> {
    match status {
        WaitStatus::Exited(_, PANICKED) => None,
        WaitStatus::Exited(_, code) => Some(format!("the check ended with status {code}")),
        WaitStatus::Signaled(_, signal, _) => {
            let is_missing = signal == Signal::SIGSYS;
            let cause =
                if is_missing { ": the kernel lacks a system call that it made" } else { "" };
            Some(format!("the check was ended by {signal} ({}){cause}", signal as i32))
        }
        other => Some(format!("the check ended with {other:?}")),
    }
}

/// The output of a check.
fn text(mut output: File) -> io::Result<String> {
    output.rewind()?;
    let mut bytes = Vec::new();
    (&output).take(MOST_OUTPUT).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let dropped = output.metadata()?.len().saturating_sub(MOST_OUTPUT);
    if dropped > 0 {
        text.push_str(&format!("({dropped} more bytes of output)\n"));
    }
    Ok(text)
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
        assert!((outcome.message.len() as u64) < MOST_OUTPUT + 100);
        assert!(outcome.message.ends_with("more bytes of output)"));
    }
}
