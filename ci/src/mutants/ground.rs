//! Where alterations are tried: a target and the unaltered suite's results there.

use super::record::{Lockstep, Outcome, Record};
use super::subject::Plan;
use super::trial::{self, Attempt, Seen};
use crate::cli::LockstepOptions;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result};
use kcov_vm::guest::{Finished, Limits, Listener};
use kcov_vm::kernel::Kernel;
use kcov_vm::session::{Ready, Session, Task};
use kcov_vm::target::{Kind, Target};
use kcov_vm::tester::suite_arguments;
use kcov_vm::verdict::Outcome as Verdict;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The number of guests for one alteration's way through the suite.
const GUESTS: usize = 5;

/// A guest hangs if it uses this processor time without output, or three times what the unaltered
/// kernel's used if that is more.
const SILENT: Duration = Duration::from_secs(10);

/// The time limit of a check on an altered User-Mode Linux kernel. Many alterations leave checks
/// waiting forever; on the unaltered kernel the slowest check that waits takes three seconds.
const CHECK: Duration = Duration::from_secs(10);

/// If no more checks than these are red, and all of them reached that limit, they run once more with
/// the suite's own: on a busy host they may have been slow.
const FEW: usize = 3;

/// No more guests start on an alteration after so many times a guest's usual limit.
const ROUNDS: u32 = 2;

/// A kernel that seems to hang runs again, with the time limit times this.
const AGAIN: u32 = 3;

/// A target with a green unaltered kernel.
#[derive(Debug)]
pub struct Ground<'a> {
    session: &'a Session,
    pub target: &'a Target,
    /// Whether to run the whole suite.
    pub whole: bool,
    pub directory: &'a Path,
    /// The unaltered kernel.
    kernel: PathBuf,
    /// The unaltered suite, with the arguments of every run.
    pub suite: Task,
    ready: Ready<'a>,
    /// The checks that run there, in order.
    pub order: Vec<String>,
    /// The checks that are skipped there.
    pub skipped: Vec<String>,
    /// The time limit for a kernel that may hang.
    patience: Duration,
    /// The processor time that a guest may use without output.
    silent: Option<Duration>,
    lockstep: Option<Companion>,
}

/// Lockstep, which runs on an altered kernel after the suite.
#[derive(Debug)]
struct Companion {
    task: Task,
    /// The time limits for a kernel that may hang, and for a second try.
    limits: [Duration; 2],
}

impl<'a> Ground<'a> {
    /// Runs the whole suite, or these checks and topics, on the unaltered kernel.
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
        let ready = match target.kind {
            Kind::Uml | Kind::Qemu => session.prepare(target)?,
            Kind::Netbsd => session.prepare_with(target, Kernel::given(&kernel, "--build")?)?,
        };
        let (patience, silent, lockstep) = (Duration::ZERO, None, None);
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
            silent,
            lockstep,
        };
        let started = Instant::now();
        let (silence, skipped, order) = ground.green()?;
        // Long enough for a busy host.
        ground.patience = patient(started.elapsed());
        // Several processors may wait busily until the limit of a check.
        let busy = if target.smp > 1 { CHECK * target.smp } else { SILENT };
        ground.silent = Some(busy.max(silence * 3));
        (ground.skipped, ground.order) = (skipped, order);
        Ok(ground)
    }

    /// Returns the task that runs this build of the suite.
    pub fn task(&self, file: &Path) -> Result<Task> {
        task(self.session, self.target, file, self.whole)
    }

    /// Lets lockstep follow the suite. It must agree on the unaltered kernel.
    pub fn accompany(&mut self, plan: &Plan) -> Result<()> {
        let mut task = self.suite.clone();
        task.arguments = suite_arguments(self.target, &plan.words(), self.target.calls.is_some());
        let most = self.session.program_limit(self.target);
        self.lockstep = Some(Companion { task, limits: [most; 2] });
        let started = Instant::now();
        self.agrees()?;
        if let Some(companion) = &mut self.lockstep {
            // Many alterations hang, so the second limit is not the target's.
            let usual = Duration::from_secs(LockstepOptions::limit(plan.operations, 1));
            let full = usual.max(started.elapsed() * 20).min(most);
            companion.limits = [patient(started.elapsed()).min(full), full];
        }
        Ok(())
    }

    /// Checks that lockstep agrees on the unaltered kernel, if it runs there.
    pub fn agrees(&self) -> Result<()> {
        let why = match self.lockstep(&self.kernel, "green")? {
            None | Some(Lockstep::Agreed) => return Ok(()),
            Some(Lockstep::Parted) => "it diverges from the model".into(),
            Some(Lockstep::Ended(why)) => why,
        };
        let message = format!("lockstep does not agree on the unaltered kernel: {why}");
        Err(Error::unavailable(Phase::Verdict, message))
    }

    /// Runs lockstep on an altered kernel, if it runs on the target.
    pub fn lockstep(&self, kernel: &Path, logs: &str) -> Result<Option<Lockstep>> {
        let Some(Companion { task, limits }) = &self.lockstep else { return Ok(None) };
        let logs = self.directory.join(format!("lockstep-{logs}"));
        let attempt = Attempt { kernel, suite: task, logs, limit: None, first: &[] };
        let mut last = String::new();
        for limit in limits {
            let heard = trial::once(&self.boot(), &attempt, self.limits(Some(*limit)), &[])?;
            if heard.checks.iter().any(|check| check.outcome.is_red()) {
                return Ok(Some(Lockstep::Parted));
            }
            match heard.ended {
                None => return Ok(Some(Lockstep::Agreed)),
                Some(why) => last = why,
            }
        }
        Ok(Some(Lockstep::Ended(last)))
    }

    /// Checks that the unaltered kernel is green; otherwise no result means anything. Returns the
    /// guest's longest silence, and the skipped and the executed checks.
    pub fn green(&self) -> Result<(Duration, Vec<String>, Vec<String>)> {
        let logs = self.directory.join("green");
        let (kernel, suite) = (&self.kernel, &self.suite);
        let attempt = Attempt { kernel, suite, logs, limit: self.check_limit(), first: &[] };
        let heard = trial::once(&self.boot(), &attempt, self.limits(None), &self.order)?;
        let red: Vec<&str> =
            heard.checks.iter().filter(|c| c.outcome.is_red()).map(|c| c.id.as_str()).collect();
        if !red.is_empty() || heard.ended.is_some() {
            let why = heard.ended.unwrap_or_else(|| red.join(", "));
            let message = format!("the suite is not green on the unaltered kernel: {why}");
            return Err(Error::unavailable(Phase::Verdict, message));
        }
        let skipped =
            |check: &kcov_vm::verdict::Check| matches!(check.outcome, Verdict::Skip { .. });
        let (skipped, run): (Vec<_>, Vec<_>) = heard.checks.into_iter().partition(skipped);
        let ids = |checks: Vec<kcov_vm::verdict::Check>| checks.into_iter().map(|c| c.id).collect();
        Ok((heard.silence, ids(skipped), ids(run)))
    }

    /// Returns the checks that run there and that these ids and topics select. Without any, all.
    pub fn chosen(&self, checks: &[String]) -> Result<Vec<String>> {
        let is_of = |id: &str, topic: &str| {
            id.strip_prefix(topic).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let is_chosen =
            |id: &&String| checks.is_empty() || checks.iter().any(|topic| is_of(id, topic));
        let chosen: Vec<String> = self.order.iter().filter(is_chosen).cloned().collect();
        if chosen.is_empty() {
            let message = format!("{}: runs none of {}", self.target.name, checks.join(", "));
            return Err(Error::unavailable(Phase::Verdict, message));
        }
        Ok(chosen)
    }

    /// Judges an alteration with these checks, some of them first. `kernel` is the altered kernel, if
    /// the kernel is altered.
    pub fn judge(
        &self,
        order: &[String],
        first: &[String],
        kernel: Option<&Path>,
        suite: &Task,
        worker: u32,
        record: impl FnOnce(&[String]) -> Vec<usize>,
    ) -> Result<Outcome> {
        let kernel = kernel.unwrap_or(&self.kernel);
        let logs = self.directory.join(format!("guest-{worker}"));
        let mut attempt = Attempt { kernel, suite, logs, limit: self.check_limit(), first };
        let guests = if self.whole { GUESTS } else { 1 };
        let end = Instant::now() + self.patience * ROUNDS;
        let mut seen = trial::walk(
            &self.boot(),
            order,
            &attempt,
            self.limits(Some(self.patience)),
            guests,
            end,
        )?;
        if seen.red.is_empty() && seen.ended.is_some() {
            let limits = self.limits(Some(self.patience * AGAIN));
            seen = trial::walk(&self.boot(), order, &attempt, limits, 1, end)?;
        }
        if seen.red == seen.late && (1..=FEW).contains(&seen.late.len()) {
            attempt.limit = None;
            let heard = trial::once(&self.boot(), &attempt, self.limits(None), &seen.late)?;
            let passed = heard.checks.iter().filter(|check| !check.outcome.is_red());
            let passed: Vec<&String> = passed.map(|check| &check.id).collect();
            seen.red.retain(|id| !passed.contains(&id));
        }
        let Seen { red, ended, during, unseen, .. } = seen;
        Ok(match ended {
            _ if !red.is_empty() => Outcome::Killed { red: record(&red), unseen },
            Some(why) => Outcome::Ended { why, during: record(&during) },
            None => Outcome::Undetected,
        })
    }

    /// Boots kernels for a trial.
    fn boot(&self) -> impl Fn(&Attempt<'_>, Limits, Task, &mut dyn Listener) -> Result<Finished> {
        |attempt, limits, task, listener| self.run(attempt, limits, task, listener)
    }

    /// Boots a kernel and runs a task.
    fn run(
        &self,
        attempt: &Attempt<'_>,
        limits: Limits,
        task: Task,
        listener: &mut dyn Listener,
    ) -> Result<Finished> {
        let Attempt { kernel, logs, .. } = attempt;
        let _ = fs::remove_dir_all(logs);
        fs::create_dir_all(logs).or_unavailable(Phase::Image, logs.display())?;
        let ready = self.ready.with(kernel.to_path_buf(), logs.clone(), limits)?;
        let task = task.knowing(self.session.calls(&ready)?);
        self.session.run(&ready, task, listener)
    }

    /// Adds the checks that run there to the record.
    pub fn introduce(&self, record: &mut Record) {
        record.places(&self.order);
        record.skip(self.skipped.clone());
    }

    fn check_limit(&self) -> Option<Duration> {
        (self.target.kind == Kind::Uml).then_some(CHECK)
    }

    fn limits(&self, program: Option<Duration>) -> Limits {
        let most = self.session.choices.limit.unwrap_or(self.target.program_limit());
        let program = program.unwrap_or(most);
        Limits { boot: self.target.boot_limit(), program, silent: self.silent, ..Limits::default() }
    }
}

/// A limit that suits a busy host. A kernel that seems to hang gets a second run with the full one.
fn patient(took: Duration) -> Duration {
    (took * 3).max(Duration::from_secs(30))
}

fn task(session: &Session, target: &Target, file: &Path, whole: bool) -> Result<Task> {
    let mut arguments = suite_arguments(target, &[], target.calls.is_some());
    arguments.extend((!whole).then(|| "--fail-fast".into()));
    let task = session.task(target, file, arguments);
    task.map_err(|why| Error::unavailable(Phase::Image, why))
}
