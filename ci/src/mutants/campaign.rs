//! All mutants, one after the other: one is compiled while those before it run.

use super::mutant::Mutant;
use super::order::killers;
use super::record::{Entry, Outcome, Record};
use super::trial;
use crate::cli::MutantsOptions;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::guest::Limits;
use crate::hash;
use crate::kernel::Bench;
use crate::session::{Ready, Session, Task};
use crate::target::Target;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// What the mutants are tried with, and what has come of them.
pub struct Campaign<'a> {
    session: &'a Session,
    target: &'a Target,
    options: &'a MutantsOptions,
    /// The same for all, whatever is built meanwhile.
    suite: Task,
    order: Vec<&'a str>,
    record: Mutex<Record>,
    started: Instant,
}

/// A kernel to try, and where.
struct Job<'a> {
    mutant: &'a Mutant,
    kernel: PathBuf,
}

impl<'a> Campaign<'a> {
    /// Goes on with a record. `chosen` are all mutants that it is to be of.
    pub fn new(
        session: &'a Session,
        target: &'a Target,
        options: &'a MutantsOptions,
        suite: Task,
        chosen: &[&'a Mutant],
        record: Record,
    ) -> Self {
        let order = chosen.iter().map(|mutant| mutant.id.as_str()).collect();
        let (record, started) = (Mutex::new(record), Instant::now());
        Self { session, target, options, suite, order, record, started }
    }

    /// What came of the mutants.
    pub fn into_record(self) -> Record {
        self.record.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs these mutants.
    pub fn all(&self, bench: &Bench, mutants: &[&Mutant]) -> Result<()> {
        let original = bench.compile(bench.original())?.map_err(unaltered)?;
        let kernel = bench.link()?.map_err(unaltered)?;
        let directory = self.session.cache.runs().join(format!("{}-mutants", self.target.name));
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).or_unavailable(Phase::Image, directory.display())?;
        let first = keep(&kernel, &directory, "unaltered")?;
        let unaltered_kernel = fs::read(&first).or_unavailable(Phase::Build, first.display())?;
        let ready = self.session.prepare(self.target)?;

        let took = self.green(&ready, &first, &directory)?;
        // Long enough for a busy host, short enough for kernels that hang.
        let patience = (took * 3).max(Duration::from_secs(30));
        let (sender, jobs) = sync_channel::<Job<'_>>(1);
        let jobs = Mutex::new(jobs);
        let twins = thread::scope(|scope| {
            let workers: Vec<_> = (0..self.options.guests)
                .map(|number| {
                    let (ready, jobs, directory) = (&ready, &jobs, &directory);
                    scope.spawn(move || self.work(number, ready, jobs, directory, patience))
                })
                .collect();
            let made = self.make(bench, mutants, &original, &unaltered_kernel, &directory, &sender);
            drop(sender);
            let ran: Vec<Result<()>> = workers
                .into_iter()
                .map(|worker| {
                    worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
                })
                .collect();
            let twins = made?;
            ran.into_iter().collect::<Result<()>>().map(|()| twins)
        })?;
        for (mutant, first) in twins {
            let outcome = {
                let record = self.record();
                let found = record.mutants.iter().find(|entry| entry.id == first);
                found.map(|entry| entry.outcome.clone())
            };
            if let Some(outcome) = outcome {
                self.settle(mutant, outcome);
            }
        }
        self.green(&ready, &first, &directory)?;
        bench.compile(bench.original())?.map_err(unaltered).map(drop)
    }

    /// The unaltered kernel has to be green, or nothing means anything.
    fn green(&self, ready: &Ready<'_>, kernel: &Path, directory: &Path) -> Result<Duration> {
        let started = Instant::now();
        let limits =
            Limits { boot: self.target.boot_limit(), program: self.target.program_limit() };
        match self.trial(ready, kernel, directory.join("green"), limits, &[])? {
            Outcome::Survived => Ok(started.elapsed()),
            other => {
                let message = format!("the suite is not green on the unaltered kernel: {other:?}");
                Err(Error::unavailable(Phase::Verdict, message))
            }
        }
    }

    /// Compiles and links; hands on what has to be tried. Returns the mutants of which the
    /// compiler makes the same as of one before, with that one: they have its fate.
    fn make<'m>(
        &self,
        bench: &Bench,
        mutants: &[&'m Mutant],
        original: &[u8],
        unaltered_kernel: &[u8],
        directory: &Path,
        jobs: &SyncSender<Job<'m>>,
    ) -> Result<Vec<(&'m Mutant, String)>> {
        let mut twins = Vec::new();
        let mut tried: HashMap<String, &str> = HashMap::new();
        for (number, mutant) in mutants.iter().enumerate() {
            let object = match bench.compile(&mutant.apply(bench.original()))? {
                Ok(object) if object == original => {
                    self.settle(mutant, Outcome::SameCode);
                    continue;
                }
                Ok(object) => object,
                Err(why) => {
                    self.settle(mutant, Outcome::Invalid { why });
                    continue;
                }
            };
            if let Some(first) = tried.get(&hash::bytes(&object)) {
                twins.push((*mutant, (*first).to_string()));
                continue;
            }
            tried.insert(hash::bytes(&object), &mutant.id);
            let kernel = match bench.link()? {
                Ok(kernel) => keep(&kernel, directory, &format!("kernel-{number}"))?,
                Err(why) => {
                    self.settle(mutant, Outcome::Invalid { why });
                    continue;
                }
            };
            if fs::read(&kernel).or_unavailable(Phase::Build, kernel.display())? == unaltered_kernel
            {
                let message = format!("`{}` did not get into the kernel", mutant.id);
                return Err(Error::unavailable(Phase::Build, message));
            }
            if jobs.send(Job { mutant, kernel }).is_err() {
                // The workers have ended, with an error of theirs.
                break;
            }
        }
        Ok(twins)
    }

    fn work(
        &self,
        number: u32,
        ready: &Ready<'_>,
        jobs: &Mutex<Receiver<Job<'_>>>,
        directory: &Path,
        patience: Duration,
    ) -> Result<()> {
        let limits = Limits { boot: self.target.boot_limit(), program: patience };
        loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { mutant, kernel }) = next else { return Ok(()) };
            let first = killers(&self.record().mutants, &mutant.function);
            let logs = directory.join(format!("guest-{number}"));
            let outcome = self.trial(ready, &kernel, logs, limits, &first)?;
            let _ = fs::remove_file(&kernel);
            self.settle(mutant, outcome);
        }
    }

    fn trial(
        &self,
        ready: &Ready<'_>,
        kernel: &Path,
        logs: PathBuf,
        limits: Limits,
        first: &[String],
    ) -> Result<Outcome> {
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir_all(&logs).or_unavailable(Phase::Image, logs.display())?;
        let mut task = self.suite.clone();
        if !first.is_empty() {
            task.arguments.extend(["--first".into(), first.join(",").into()]);
        }
        let ready = ready.with(kernel.to_path_buf(), logs, limits);
        let task = task.knowing(self.session.calls(&ready)?);
        trial::run(self.session, &ready, task)
    }

    /// Notes what came of a mutant, and says so.
    fn settle(&self, mutant: &Mutant, outcome: Outcome) {
        let mut record = self.record();
        record.mutants.push(Entry::new(mutant, outcome.clone()));
        let place = |id: &str| self.order.iter().position(|other| *other == id);
        record.mutants.sort_by_key(|entry| place(&entry.id));
        if let Some(file) = &self.options.report {
            // What is lost with it is made again.
            let _ = fs::write(file, record.to_json());
        }
        let seconds = self.started.elapsed().as_secs();
        let word = match outcome {
            Outcome::Killed { by } => format!("killed by {by}"),
            Outcome::Crashed { why } => format!("crashed: {why}"),
            Outcome::Survived => "SURVIVED".into(),
            Outcome::SameCode => "same code".into(),
            Outcome::Invalid { why } => format!("invalid: {why}"),
        };
        eprintln!(
            "{seconds} s, {} of {}: {}: {word}",
            record.mutants.len(),
            self.order.len(),
            mutant.id
        );
    }
}

fn unaltered(why: String) -> Error {
    Error::unavailable(Phase::Build, format!("the unaltered file does not build: {why}"))
}

/// A copy that the next link does not touch.
fn keep(kernel: &Path, directory: &Path, name: &str) -> Result<PathBuf> {
    let copy = directory.join(name);
    fs::copy(kernel, &copy).or_unavailable(Phase::Build, copy.display())?;
    Ok(copy)
}
