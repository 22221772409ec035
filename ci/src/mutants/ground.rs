//! Where alterations are tried: a target, and the suite as it runs there unaltered.

use super::record::{Outcome, Record};
use super::trial::{self, Attempt, Seen};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::guest::{Finished, Limits, Listener};
use crate::session::{Ready, Session, Task};
use crate::target::Target;
use crate::tester::suite_arguments;
use crate::verdict::Outcome as Verdict;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How many guests an alteration gets for its way through the suite.
const GUESTS: usize = 5;

/// A target whose unaltered kernel is green.
#[derive(Debug)]
pub struct Ground<'a> {
    session: &'a Session,
    pub target: &'a Target,
    /// Whether the suite runs to its end.
    pub whole: bool,
    pub directory: &'a Path,
    /// The unaltered kernel.
    kernel: PathBuf,
    /// The unaltered suite, with the arguments of every run.
    pub suite: Task,
    ready: Ready<'a>,
    /// The checks that run there, as they do.
    pub order: Vec<String>,
    /// Those that do not.
    pub skipped: Vec<String>,
    /// How long a kernel may take that may hang.
    patience: Duration,
}

impl<'a> Ground<'a> {
    /// Runs the suite on the unaltered kernel, or these checks and topics of it.
    pub fn new(
        session: &'a Session,
        target: &'a Target,
        kernel: PathBuf,
        suite: &Path,
        directory: &'a Path,
        checks: &[String],
        whole: bool,
    ) -> Result<Self> {
        let suite = task(session, target, suite, whole)?;
        let (ready, patience) = (session.prepare(target)?, Duration::ZERO);
        let (order, skipped) = (checks.to_vec(), Vec::new());
        let mut ground = Self {
            session,
            target,
            whole,
            directory,
            kernel,
            suite,
            ready,
            order,
            skipped,
            patience,
        };
        let started = Instant::now();
        let checks = ground.green()?;
        // Long enough for a busy host; a kernel that seems to hang is given all time once more.
        ground.patience = (started.elapsed() * 3).max(Duration::from_secs(30));
        (ground.skipped, ground.order) = checks;
        Ok(ground)
    }

    /// The suite as it is called there, whichever build of it.
    pub fn task(&self, file: &Path) -> Result<Task> {
        task(self.session, self.target, file, self.whole)
    }

    /// The unaltered kernel has to be green, or nothing means anything. Returns what was skipped
    /// and what was run.
    pub fn green(&self) -> Result<(Vec<String>, Vec<String>)> {
        let logs = self.directory.join("green");
        let attempt = Attempt { kernel: &self.kernel, suite: &self.suite, logs };
        let heard = trial::once(self, &attempt, self.limits(None), &self.order)?;
        let red: Vec<&str> =
            heard.checks.iter().filter(|c| c.outcome.is_red()).map(|c| c.id.as_str()).collect();
        if !red.is_empty() || heard.ended.is_some() {
            let why = heard.ended.unwrap_or_else(|| red.join(", "));
            let message = format!("the suite is not green on the unaltered kernel: {why}");
            return Err(Error::unavailable(Phase::Verdict, message));
        }
        let skipped = |check: &crate::verdict::Check| matches!(check.outcome, Verdict::Skip { .. });
        let (skipped, run): (Vec<_>, Vec<_>) = heard.checks.into_iter().partition(skipped);
        let ids = |checks: Vec<crate::verdict::Check>| checks.into_iter().map(|c| c.id).collect();
        Ok((ids(skipped), ids(run)))
    }

    /// What comes of an alteration. `kernel` is its kernel, if it is one of the kernel.
    pub fn judge(
        &self,
        kernel: Option<&Path>,
        suite: &Task,
        worker: u32,
        record: impl FnOnce(&[String]) -> Vec<usize>,
    ) -> Result<Outcome> {
        let kernel = kernel.unwrap_or(&self.kernel);
        let logs = self.directory.join(format!("guest-{worker}"));
        let attempt = Attempt { kernel, suite, logs };
        let guests = if self.whole { GUESTS } else { 1 };
        let mut seen = trial::walk(self, &attempt, self.limits(Some(self.patience)), guests)?;
        if seen.red.is_empty() && seen.ended.is_some() {
            seen = trial::walk(self, &attempt, self.limits(None), 1)?;
        }
        let Seen { red, ended, unseen } = seen;
        Ok(match ended {
            _ if !red.is_empty() => Outcome::Killed { red: record(&red), unseen },
            Some(why) => Outcome::Ended { why },
            None => Outcome::Undetected,
        })
    }

    /// Boots a kernel and runs a task.
    pub fn run(
        &self,
        attempt: &Attempt<'_>,
        limits: Limits,
        task: Task,
        listener: &mut dyn Listener,
    ) -> Result<Finished> {
        let Attempt { kernel, logs, .. } = attempt;
        let _ = fs::remove_dir_all(logs);
        fs::create_dir_all(logs).or_unavailable(Phase::Image, logs.display())?;
        let ready = self.ready.with(kernel.to_path_buf(), logs.clone(), limits);
        let task = task.knowing(self.session.calls(&ready)?);
        self.session.run(&ready, task, listener)
    }

    /// Notes which checks run there.
    pub fn introduce(&self, record: &mut Record) {
        record.places(&self.order);
        record.skip(self.skipped.clone());
    }

    fn limits(&self, program: Option<Duration>) -> Limits {
        let most = self.session.choices.limit.unwrap_or(self.target.program_limit());
        let program = program.unwrap_or(most);
        Limits { boot: self.target.boot_limit(), program }
    }
}

fn task(session: &Session, target: &Target, file: &Path, whole: bool) -> Result<Task> {
    let mut arguments = suite_arguments(target, &[], target.calls.is_some());
    arguments.extend((!whole).then(|| "--fail-fast".into()));
    let task = session.task(target, file, arguments);
    task.map_err(|why| Error::unavailable(Phase::Image, why))
}
