//! All mutants, one after the other: one is compiled while those before it run.

use super::mutant::{self, Mutant};
use super::order::killers;
use super::record::{Entry, Outcome, Record};
use super::subject::Subject;
use super::{page, trial};
use crate::cli::MutantsOptions;
use crate::commands::print;
use crate::error::{
    Error, OrUnavailable as _, Phase, Result, STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE,
};
use crate::guest::Limits;
use crate::hash;
use crate::kernel::Bench;
use crate::session::{Ready, Session, Task};
use crate::target::{Kind, Target};
use crate::tester::suite_arguments;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Runs the mutants of the target's driver and reports.
pub fn run(session: &Session, target: &Target, options: &MutantsOptions) -> Result<u8> {
    if target.mutants.is_empty() || target.kind == Kind::Netbsd {
        return Err(Error::usage(format!("targets.toml names no mutants for {}", target.name)));
    }
    let subject = Subject::load(&session.targets.base, &target.mutants, &target.name)?;
    let source = session.source(target)?;
    let (cache, jobs) = (&session.cache, session.choices.jobs);
    let bench = Bench::open(target, &source, &session.targets.base, cache, jobs, &subject.file)?;
    let wrong = |why| Error::unavailable(Phase::Targets, format!("{}: {why}", target.mutants));
    let all = mutant::all(bench.original(), &bench.config()?, &subject).map_err(wrong)?;
    let known = |id: &String| all.iter().any(|mutant| mutant.id == *id);
    let mut listed = subject.equivalent.iter().flat_map(|entry| &entry.ids);
    if let Some(id) = listed.find(|id| !known(id)) {
        return Err(wrong(format!("`{id}` is called equivalent, and there is no such mutant")));
    }
    let chosen = chosen(&all, options);
    if options.list {
        chosen.iter().for_each(|mutant| print(&format!("{:5} {}\n", mutant.line, mutant.id)));
        print(&format!("{} of {} mutants\n", chosen.len(), all.len()));
        return Ok(STATUS_PASSED);
    }
    let mut record = Record {
        target: target.name.clone(),
        source: source.describe(),
        file: subject.file.clone(),
        all: all.len(),
        mutants: Vec::new(),
    };
    if let Some(file) = &options.again {
        let earlier = Record::read(file)?;
        let outcomes = earlier.mutants.into_iter().map(|entry| (entry.id, entry.outcome));
        let outcomes: HashMap<_, _> = outcomes.collect();
        let settled = |outcome: &Outcome| options.no_run || *outcome != Outcome::Survived;
        let keep = |mutant: &&&Mutant| outcomes.get(&mutant.id).is_some_and(settled);
        record.mutants =
            chosen.iter().filter(keep).map(|m| entry(m, outcomes[&m.id].clone())).collect();
    }
    let done: Vec<String> = record.mutants.iter().map(|entry| entry.id.clone()).collect();
    let left: Vec<&Mutant> = chosen.iter().copied().filter(|m| !done.contains(&m.id)).collect();
    let suite = session.programs.suite_for(&target.userland)?;
    let mut arguments = suite_arguments(target, &[]);
    arguments.push("--fail-fast".into());
    let suite = session.task(target, &suite, arguments);
    let campaign = Campaign {
        // The same for all, whatever is built meanwhile.
        suite: suite.map_err(|why| Error::unavailable(Phase::Image, why))?,
        session,
        target,
        options,
        order: chosen.iter().map(|mutant| mutant.id.as_str()).collect(),
        record: Mutex::new(record),
        started: Instant::now(),
    };
    if !options.no_run && !left.is_empty() {
        campaign.all(&bench, &left)?;
    }
    let record = campaign.record.into_inner().unwrap_or_else(PoisonError::into_inner);
    print(&page::text(&record, &subject));
    if let Some(file) = &options.page {
        let page = page::render(&record, &subject);
        fs::write(file, page).or_unavailable(Phase::Verdict, file.display())?;
    }
    let missed = page::Counts::of(record.mutants.iter(), &subject);
    Ok(match record.mutants.len() {
        _ if missed.survived + missed.stale > 0 => STATUS_FAILED,
        tried if tried < chosen.len() => STATUS_UNAVAILABLE,
        _ => STATUS_PASSED,
    })
}

fn entry(mutant: &Mutant, outcome: Outcome) -> Entry {
    let Mutant { id, function, line, .. } = mutant;
    Entry { id: id.clone(), function: function.clone(), line: *line, outcome }
}

/// What is asked for. A sample is the same for the same seed.
fn chosen<'a>(all: &'a [Mutant], options: &MutantsOptions) -> Vec<&'a Mutant> {
    let wanted = |m: &&Mutant| options.only.as_ref().is_none_or(|words| m.id.contains(words));
    let mut found: Vec<&Mutant> = all.iter().filter(wanted).collect();
    if let Some(count) = options.sample {
        let rank =
            |mutant: &Mutant| hash::bytes(format!("{} {}", options.seed, mutant.id).as_bytes());
        found.sort_by_cached_key(|mutant| rank(mutant));
        found.truncate(count);
        found.sort_by_key(|mutant| mutant.edit.place.start);
    }
    found
}

struct Campaign<'a> {
    session: &'a Session,
    target: &'a Target,
    options: &'a MutantsOptions,
    order: Vec<&'a str>,
    record: Mutex<Record>,
    suite: Task,
    started: Instant,
}

/// A kernel to try, and where.
struct Job<'a> {
    mutant: &'a Mutant,
    kernel: PathBuf,
}

impl Campaign<'_> {
    fn all(&self, bench: &Bench, mutants: &[&Mutant]) -> Result<()> {
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
            let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
            let found = record.mutants.iter().find(|entry| entry.id == first);
            let outcome = found.map(|entry| entry.outcome.clone());
            drop(record);
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
            let first = {
                let record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
                killers(&record.mutants, &mutant.function)
            };
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
        trial::run(self.session, &ready.with(kernel.to_path_buf(), logs, limits), task)
    }

    /// Notes what came of a mutant, and says so.
    fn settle(&self, mutant: &Mutant, outcome: Outcome) {
        let mut record = self.record.lock().unwrap_or_else(PoisonError::into_inner);
        record.mutants.push(entry(mutant, outcome.clone()));
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
