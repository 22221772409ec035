//! Runs checks on an altered kernel, or in an altered suite.

use super::alteration::Alteration;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result};
use kcov_vm::guest::{Limits, Listener, Stream};
use kcov_vm::kernel::Kernel;
use kcov_vm::session::{Ready, Session, Task};
use kcov_vm::target::{Kind, Target};
use kcov_vm::tester::suite_arguments;
use kcov_vm::verdict::{Check, Outcome, Reader};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The shortest time limit of a check on an altered User-Mode Linux. There is a limit because many
/// alterations make checks wait forever.
const CHECK: Duration = Duration::from_secs(10);

/// The time limit of a check on the unaltered kernel. It is long because the host may be busy.
const UNALTERED: Duration = Duration::from_secs(120);

/// A guest hangs if each of its processors uses this time without output.
const SILENT: Duration = Duration::from_secs(60);

/// The number of guests for one alteration: some show a defect only to some runs, and some do not
/// survive a check.
const GUESTS: usize = 5;

/// A target whose unaltered kernel passes the checks.
pub struct Judge<'a> {
    session: &'a Session,
    pub target: &'a Target,
    /// Holds the target's altered kernels and the guests' logs.
    pub directory: PathBuf,
    ready: Ready<'a>,
    /// The unaltered kernel.
    pub kernel: PathBuf,
    /// The unaltered suite.
    pub suite: Task,
    /// The checks, in the order in which they run.
    order: Vec<String>,
    limits: Limits,
    /// The time limit of a check: three times what the slowest one took on the unaltered kernel, or
    /// longer.
    check: Duration,
}

/// The results of a guest.
struct Heard {
    checks: Vec<Check>,
    /// The longest time between two outputs, which is at least that of the slowest check.
    slowest: Duration,
    /// Why the guest ended early or badly.
    ended: Option<String>,
}

#[derive(Default)]
struct Ear {
    reader: Reader,
    last: Option<Instant>,
    slowest: Duration,
}

impl Listener for Ear {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Out {
            self.reader.feed(bytes);
            let last = self.last.replace(Instant::now());
            self.slowest = self.slowest.max(last.map_or(Duration::ZERO, |last| last.elapsed()));
        }
    }
}

impl<'a> Judge<'a> {
    /// Runs the checks on the unaltered kernel. All have to pass, otherwise a failure on an altered
    /// one means nothing.
    pub fn new(
        session: &'a Session,
        target: &'a Target,
        kernel: PathBuf,
        file: &Path,
        directory: PathBuf,
        checks: &[String],
    ) -> Result<Self> {
        let suite = task(session, target, file, UNALTERED)?;
        let ready = session.prepare_with(target, Kernel::given(&kernel, "--build")?)?;
        let program = session.program_limit(target);
        let limits = Limits { boot: target.boot_limit(), program, ..Limits::default() };
        let (order, check) = (Vec::new(), UNALTERED);
        let mut judge =
            Self { session, target, directory, ready, kernel, suite, order, limits, check };
        let started = Instant::now();
        let heard = judge.hear(&judge.kernel, &judge.suite, checks, program, 0)?;
        let bad = heard.checks.iter().filter(|check| check.outcome != Outcome::Pass);
        let bad: Vec<&str> = bad.map(|check| check.id.as_str()).collect();
        if !bad.is_empty() || heard.ended.is_some() {
            let why = heard.ended.unwrap_or_else(|| bad.join(", "));
            let message =
                format!("{}: the unaltered kernel fails or skips checks: {why}", target.name);
            return Err(Error::unavailable(Phase::Verdict, message));
        }
        judge.check = CHECK.max(heard.slowest * 3);
        judge.suite = judge.task(file)?;
        judge.order = heard.checks.into_iter().map(|check| check.id).collect();
        // Long enough for a busy host; several processors may wait busily for each other.
        judge.limits.program = program.min(started.elapsed() * 3 + Duration::from_secs(30));
        judge.limits.silent = Some(SILENT * target.smp);
        Ok(judge)
    }

    /// Returns the task that runs this build of the suite.
    pub fn task(&self, file: &Path) -> Result<Task> {
        task(self.session, self.target, file, self.check)
    }

    /// Runs the checks of an alteration. Returns how it differs from its description.
    pub fn verdict(
        &self,
        alteration: &Alteration,
        kernel: &Path,
        suite: &Task,
        worker: usize,
    ) -> Result<Vec<String>> {
        let mut wrong = Vec::new();
        let is_red = |id: &&String| alteration.red.contains(id);
        let mut left: Vec<String> = self.order.iter().filter(is_red).cloned().collect();
        for _ in 0..GUESTS {
            if left.is_empty() {
                break;
            }
            let limit = self.limits.program + self.check * left.len() as u32;
            let heard = self.hear(kernel, suite, &left, limit, worker)?;
            let green = heard.checks.iter().filter(|check| !check.outcome.is_red());
            wrong.extend(green.map(|check| format!("{} is green", check.id)));
            left.retain(|id| !heard.checks.iter().any(|check| check.id == *id));
            match heard.ended {
                // The next guest leaves out the check that this one did not survive.
                Some(why) if !left.is_empty() => {
                    wrong.push(format!("{} has no result: {why}", left.remove(0)));
                }
                _ => break,
            }
        }
        wrong.extend(left.iter().map(|id| format!("{id} did not run")));
        if !alteration.ends.is_empty() && !self.ends(alteration, kernel, suite, worker)? {
            wrong.push(format!("the kernel survives {}", alteration.ends.join(", ")));
        }
        Ok(wrong)
    }

    /// Whether the kernel ends one of several guests.
    fn ends(
        &self,
        alteration: &Alteration,
        kernel: &Path,
        suite: &Task,
        worker: usize,
    ) -> Result<bool> {
        let limit = self.session.program_limit(self.target);
        for _ in 0..GUESTS {
            if self.hear(kernel, suite, &alteration.ends, limit, worker)?.ended.is_some() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Runs the checks in one guest. Only a failure of the infrastructure is an error.
    fn hear(
        &self,
        kernel: &Path,
        suite: &Task,
        checks: &[String],
        program: Duration,
        worker: usize,
    ) -> Result<Heard> {
        let logs = self.directory.join(format!("guest-{worker}"));
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir_all(&logs).or_unavailable(Phase::Image, logs.display())?;
        let limits = Limits { program, ..self.limits };
        let ready = self.ready.with(kernel.to_path_buf(), logs, limits)?;
        let mut task = suite.clone().knowing(self.session.calls(&ready)?);
        task.arguments.extend(checks.iter().map(Into::into));
        let mut ear = Ear::default();
        let finished = self.session.run(&ready, task, &mut ear);
        let Ear { reader, slowest, .. } = ear;
        let checks = reader.progress().0.to_vec();
        let ended = match finished {
            Ok(finished) => reader.finish(finished.ended()?).err(),
            Err(Error::Unavailable(failure)) => match failure.phase {
                Phase::Boot | Phase::Program | Phase::End => Some(failure.message),
                _ => return Err(failure.into()),
            },
            Err(error) => return Err(error),
        };
        Ok(Heard { checks, slowest, ended })
    }
}

/// The altered kernel may lack a feature that the target declares; the checks run anyway.
fn task(session: &Session, target: &Target, file: &Path, check: Duration) -> Result<Task> {
    let mut arguments = suite_arguments(target, &[], target.calls.is_some());
    arguments.push("--unproved".into());
    if target.kind == Kind::Uml {
        arguments.push(format!("--time-limit={}", check.as_secs()).into());
    }
    let task = session.task(target, file, arguments, Vec::new());
    task.map_err(|why| Error::unavailable(Phase::Image, why))
}
