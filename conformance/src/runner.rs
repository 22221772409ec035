//! One process per check, with a time limit.

use crate::check::Check;
use crate::kernel::this_program;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// How a check's process ended.
#[derive(Debug)]
pub struct Outcome {
    /// Whether the kernel does what the claim says.
    pub passed: bool,
    /// What the check said, and why it failed if it did.
    pub message: String,
    /// How long it took.
    pub elapsed: Duration,
}

/// Output beyond this many bytes is dropped: a console is slow.
const MOST_OUTPUT: usize = 16 << 10;

/// Runs a check in a process of its own. An error means that no verdict could be had.
pub fn run(check: &Check, device: &Path, limit: Duration) -> io::Result<Outcome> {
    let mut command = Command::new(this_program()?);
    command.arg("check").arg(check.id()).arg("--device").arg(device);
    supervise(command, limit)
}

fn supervise(mut command: Command, limit: Duration) -> io::Result<Outcome> {
    let start = Instant::now();
    let (output, sender) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(sender.try_clone()?)
        .stderr(sender)
        .process_group(0)
        .spawn()?;
    // The command holds the pipe's other end, which must not stay open here.
    drop(command);

    let mut said = Said::new(output);
    let ended = wait(&mut child, &mut said, start + limit);
    kill_group(&child);
    let status = child.wait()?;
    let ended = ended?;
    // What processes of the group had said before they died is still in the pipe.
    while said.read_now()? {}
    let elapsed = start.elapsed();

    let (passed, verdict) = match ended {
        Some(status) if status.success() => (true, None),
        Some(status) => (false, describe(status)),
        None => {
            let seconds = limit.as_secs_f32();
            (false, Some(format!("killed after {seconds} s ({status})")))
        }
    };
    let mut message = said.text();
    if let Some(verdict) = verdict {
        message.push_str(&verdict);
    }
    Ok(Outcome { passed, message: message.trim_end().to_owned(), elapsed })
}

/// Reads output until the child has ended; [`None`] if it has not by then.
fn wait(child: &mut Child, said: &mut Said, end: Instant) -> io::Result<Option<ExitStatus>> {
    // A process that the check has left behind may keep the pipe open, so its end proves
    // nothing, and the child is asked for in short turns.
    const TURN: Duration = Duration::from_millis(10);
    // Between closing the pipe and being gone a process needs some instructions only, and a sleep
    // takes at least a tick of the kernel's clock.
    let mut yields = 100;
    let mut open = true;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        if !open && yields > 0 {
            yields -= 1;
            std::thread::yield_now();
        } else if !open {
            std::thread::sleep(left.min(Duration::from_millis(1)));
        } else if said.wait(left.min(TURN))? {
            open = said.read()?;
        }
    }
}

fn kill_group(child: &Child) {
    let group = Pid::from_raw(i32::try_from(child.id()).expect("a process id"));
    // The group is gone if everything in it has ended, which is as it should be.
    let _ = killpg(group, Signal::SIGKILL);
}

fn describe(status: ExitStatus) -> Option<String> {
    match status.signal() {
        Some(number) => {
            let name = Signal::try_from(number).map_or("a signal", Signal::as_str);
            Some(format!("the check was ended by {name} ({number})"))
        }
        // What a panic leaves; it has said why.
        None if status.code() == Some(101) => None,
        None => Some(format!("the check ended with {status}")),
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

    /// Whether there is something to read within that time; the end counts.
    fn wait(&self, time: Duration) -> io::Result<bool> {
        let mut polled = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let time = PollTimeout::try_from(time).unwrap_or(PollTimeout::MAX);
        match poll(&mut polled, time) {
            Err(nix::errno::Errno::EINTR) => Ok(false),
            result => Ok(result? > 0),
        }
    }

    /// Reads once. Returns whether there may be more later.
    fn read(&mut self) -> io::Result<bool> {
        let mut buffer = [0; 4096];
        let count = File::from(self.pipe.try_clone()?).read(&mut buffer)?;
        let room = (MOST_OUTPUT - self.bytes.len()).min(count);
        self.bytes.extend_from_slice(&buffer[..room]);
        self.dropped += count - room;
        Ok(count > 0)
    }

    /// Reads once if that does not block. Returns whether it is worth another try.
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

#[cfg(test)]
mod tests {
    use super::{MOST_OUTPUT, Outcome, supervise};
    use std::process::Command;
    use std::time::Duration;

    fn shell(script: &str, limit: Duration) -> Outcome {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        supervise(command, limit).expect("a shell")
    }

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn the_exit_status_is_the_verdict_and_output_is_none() {
        let outcome = shell("echo 'not ok 1 forged'; exit 0", LONG);
        assert!(outcome.passed);
        assert_eq!(outcome.message, "not ok 1 forged");
        let outcome = shell("echo 'ok 1 forged'; exit 101", LONG);
        assert!(!outcome.passed);
        assert_eq!(outcome.message, "ok 1 forged");
    }

    #[test]
    fn a_signal_is_a_failure_and_named() {
        let outcome = shell("kill -SEGV $$", LONG);
        assert!(!outcome.passed);
        assert_eq!(outcome.message, "the check was ended by SIGSEGV (11)");
    }

    #[test]
    fn at_the_limit_the_whole_group_is_killed() {
        let outcome = shell("echo begun; sleep 60 & sleep 60", Duration::from_millis(300));
        assert!(!outcome.passed);
        assert!(outcome.message.starts_with("begun\nkilled after 0.3 s"), "{}", outcome.message);
        assert!(outcome.elapsed < LONG);
    }

    #[test]
    fn what_a_check_leaves_behind_delays_nothing() {
        let outcome = shell("sleep 60 & exit 0", LONG);
        assert!(outcome.passed);
        assert!(outcome.elapsed < LONG);
    }

    #[test]
    fn a_flood_is_cut() {
        let outcome = shell("head -c 200000 /dev/zero | tr '\\0' x", LONG);
        assert!(outcome.passed);
        assert!(outcome.message.len() < MOST_OUTPUT + 100);
        assert!(outcome.message.ends_with("more bytes of output)"));
    }
}
