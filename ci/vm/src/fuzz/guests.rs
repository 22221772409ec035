//! Guests that run a fuzzer.

use super::memory;
use crate::carry::Access;
use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::guest::{Listener, Stream, lockup_report};
use crate::image;
use crate::lines::Lines;
use crate::session::{Ready, SILENT, Session, Task};
use crate::target::{Kind, Target};
use kcov_vm_guest::fuzz::slot::Ran;
use kcov_vm_guest::fuzz::{CORPUS, Line, MARK, REPLAY, RESTING, SECONDS, SEED};
use kcov_vm_guest::protocol::Exit;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The time for the fuzzer's own end.
const GRACE: Duration = Duration::from_secs(120);
/// The limit of a replay.
const REPLAY_LIMIT: Duration = Duration::from_secs(120);

/// The number of bytes to keep from the end of a fuzzer's standard error.
const ERRORS: usize = 4096;

/// What a guest runs.
#[derive(Clone, Copy, Debug)]
pub enum Work<'a> {
    /// Fuzzes from these inputs with this seed, for this time. It does not mutate those in `resting`.
    Fuzz { corpus: &'a [Vec<u8>], resting: &'a [Vec<u8>], seed: u64, time: Duration },
    /// Runs these inputs once each, in order.
    Replay(&'a [Vec<u8>]),
}

/// How a guest ended.
#[derive(Clone, Debug)]
pub enum Ended {
    /// The fuzzer exited with status 0.
    Properly,
    /// The kernel or the fuzzer did not survive.
    Died(Death),
}

/// The death of a guest.
#[derive(Clone, Debug)]
pub struct Death {
    /// The input that ran, if it is known.
    pub ran: Option<Ran>,
    /// Whether the guest died before the host opened its memory, so the input cannot be known.
    pub is_lost: bool,
    /// The kernel's log.
    pub console: Vec<String>,
    /// How the runner saw it.
    pub why: String,
}

/// Boots guests of one target.
#[derive(Debug)]
pub struct Guests<'a> {
    pub session: &'a Session,
    pub target: &'a Target,
    pub ready: Ready<'a>,
    pub task: Task,
    /// Ends them as soon as it is set.
    pub stop: Arc<AtomicBool>,
}

impl Guests<'_> {
    /// Whether no guest runs any longer.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// Boots a guest with its own log directory, and calls `on` with each line of the fuzzer.
    pub fn run(&self, number: usize, work: Work<'_>, on: &mut dyn FnMut(Line)) -> Result<Ended> {
        let logs = self.ready.logs.join(number.to_string());
        fs::create_dir_all(&logs).or_unavailable(Phase::Image, logs.display())?;
        let mut task = self.task.clone();
        let mark = image::random();
        let (directories, seed, time, limit) = match work {
            Work::Fuzz { corpus, resting, seed, time } => {
                (vec![(CORPUS, corpus), (RESTING, resting)], seed, time, time + GRACE)
            }
            Work::Replay(inputs) => (vec![(REPLAY, inputs)], 0, Duration::ZERO, REPLAY_LIMIT),
        };
        for (name, value) in [
            (MARK, format!("{mark:x}")),
            (SEED, seed.to_string()),
            (SECONDS, time.as_secs().to_string()),
        ] {
            task.environment.push((name.into(), value.into()));
        }
        for (directory, inputs) in directories {
            for (at, input) in inputs.iter().enumerate() {
                let path = format!("{directory}/{at:08}");
                let content = input.as_slice().into();
                task.carried.file(Path::new(&path), Access::root(0o644), content);
            }
        }
        let ready = self.ready.beside(logs.clone(), limit)?;
        let log = File::create(logs.join("program.log")).or_unavailable(Phase::Image, "a log")?;
        let mut listen = Listen {
            process: 0,
            // Any other deleted file is far smaller.
            least: u64::from(self.target.memory) << 19,
            memory: None,
            uml: (self.target.kind == Kind::Uml).then(|| self.ready.vmlinux()),
            console: Vec::new(),
            lines: Lines::default(),
            errors: Vec::new(),
            log,
            stop: &self.stop,
            on,
        };
        let result = self.session.run(&ready, task, &mut listen);
        let Listen { memory, console, errors, .. } = listen;
        let why = match result {
            Ok(finished) => match finished.ended()? {
                Exit::Status(0) => return Ok(Ended::Properly),
                exit @ Exit::Status(_) => {
                    format!("the fuzzer ended with {exit}{}", last_words(&errors))
                }
                exit => format!("the fuzzer ended with {exit}"),
            },
            Err(_) if self.is_stopped() => return Ok(Ended::Properly),
            Err(Error::Unavailable(failure)) if is_death(&failure) => failure.message,
            Err(error) => return Err(error),
        };
        let is_lost = memory.is_none();
        // Without its memory the death is still worth a report.
        let ran =
            memory.and_then(|memory| memory::last(&memory, mark.to_be_bytes()).ok().flatten());
        Ok(Ended::Died(Death { ran, is_lost, console, why }))
    }
}

/// Whether the guest died after the fuzzer had started.
fn is_death(failure: &Unavailable) -> bool {
    let has_run = matches!(failure.phase, Phase::Program | Phase::End);
    has_run && !failure.message.starts_with("the guest's init: ")
}

/// The last line of a fuzzer's standard error, after a colon. Skips the note that follows a panic
/// message.
fn last_words(errors: &[u8]) -> String {
    let text = String::from_utf8_lossy(errors);
    let says = |line: &&str| !line.trim().is_empty() && !line.starts_with("note: ");
    text.lines().rfind(says).map_or_else(String::new, |line| format!(": {}", line.trim()))
}

/// Collects what a guest says.
struct Listen<'a> {
    process: u32,
    /// The least size of its memory, in bytes.
    least: u64,
    memory: Option<File>,
    /// The kernel's file with symbols, if the kernel is the guest's process.
    uml: Option<PathBuf>,
    console: Vec<String>,
    /// Those of standard output.
    lines: Lines,
    /// The end of standard error.
    errors: Vec<u8>,
    log: File,
    stop: &'a AtomicBool,
    on: &'a mut dyn FnMut(Line),
}

impl Listener for Listen<'_> {
    fn started(&mut self, process: u32) {
        self.process = process;
    }

    fn running(&mut self) -> bool {
        // As early as possible: on a busy host a guest may die before its first word is read.
        if self.memory.is_none() {
            self.memory = memory::open(self.process, self.least).ok();
        }
        !self.stop.load(Ordering::Relaxed)
    }

    fn console(&mut self, line: &str) {
        self.console.push(line.to_owned());
    }

    fn silent(&mut self) {
        let report = |vmlinux| lockup_report(self.process, vmlinux, SILENT.as_secs());
        self.console.extend(self.uml.as_deref().and_then(report).unwrap_or_default());
    }

    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Err {
            let end = self.errors.len().saturating_sub(ERRORS);
            self.errors.drain(..end);
            self.errors.extend_from_slice(bytes);
            // A log that cannot be written must not end the fuzzer.
            let _ = self.log.write_all(bytes);
            return;
        }
        let Self { lines, on, log, .. } = self;
        lines.feed(bytes, |line| match std::str::from_utf8(line).ok().and_then(Line::parse) {
            Some(line) => on(line),
            None => _ = log.write_all(&[line, b"\n"].concat()),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_words_are_an_error_or_the_message_of_a_panic() {
        assert_eq!(last_words(b""), "");
        assert_eq!(last_words(b"10 s: 7 runs\nError: no memory\n\n"), ": Error: no memory");
        let panic = b"thread 'main' panicked at a.rs:1:2:\nno luck\nnote: run with `X=1`\n";
        assert_eq!(last_words(panic), ": no luck");
    }
}
