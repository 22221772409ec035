//! Tries all alterations in turn: one is built while earlier ones run.

use super::bench::Bench;
use super::ground::Ground;
use super::library::Library;
use super::mutant::Mutant;
use super::record::{Entry, Lockstep, Outcome, Record};
use super::subject::Plan;
use crate::cli::MutantsOptions;
use kcov_vm::cache::Lock;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result};
use kcov_vm::hash;
use kcov_vm::parallel;
use kcov_vm::session::{Session, Task};
use kcov_vm::target::{Kind, Target};
use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A run that stops at the first failure begins with this many checks, the most frequent killers.
const FIRST: usize = 24;

/// The alterations to try and their outcomes so far.
pub struct Campaign<'a> {
    session: &'a Session,
    options: &'a MutantsOptions,
    lockstep: &'a Plan,
    /// The copy that builds all suites, including the unaltered one.
    copy: Library<'a>,
    directory: PathBuf,
    /// The names of all alterations that may be tried, in order.
    pub order: Vec<String>,
    record: Mutex<Record>,
    started: Instant,
    /// When the record's times were last updated.
    counted: Mutex<Instant>,
    /// Another campaign would remove the directory.
    _lock: Lock,
}

/// The alterations of one target. The unaltered kernel is tested once before and once after them.
pub struct Lot<'a> {
    target: &'a Target,
    /// The checks and topics of all of them; empty means all.
    checks: Vec<String>,
    /// Made for the first of them.
    ground: Option<Ground<'a>>,
}

/// An alteration to try.
struct Job<'m> {
    mutant: &'m Mutant,
    /// The altered kernel, if the kernel is altered.
    kernel: Option<PathBuf>,
    /// The altered suite, if the suite is altered.
    suite: Option<Task>,
}

impl<'a> Campaign<'a> {
    /// Continues with a record.
    pub fn new(
        session: &'a Session,
        options: &'a MutantsOptions,
        lockstep: &'a Plan,
        record: Record,
    ) -> Result<Self> {
        let name = format!("{}-mutants", options.name);
        let directory = session.cache.runs().join(&name);
        let lock = session.cache.lock(Phase::Image, &name)?;
        let _ = fs::remove_dir_all(&directory);
        fs::create_dir_all(&directory).or_unavailable(Phase::Image, directory.display())?;
        let copy = Library::open(&session.cache, &session.programs)?;
        let (started, counted) = (Instant::now(), Mutex::new(Instant::now()));
        let (record, order) = (Mutex::new(record), Vec::new());
        Ok(Self {
            session,
            options,
            lockstep,
            copy,
            directory,
            order,
            record,
            started,
            counted,
            _lock: lock,
        })
    }

    /// The outcomes.
    pub fn record(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the alteration has no outcome yet.
    pub fn lacks(&self, id: &str) -> bool {
        self.record().find(id).is_none()
    }

    /// A lot with these checks and topics, or with all.
    pub fn lot(&self, target: &'a Target, checks: Vec<String>) -> Lot<'a> {
        Lot { target, checks, ground: None }
    }

    /// Checks that the unaltered kernel is still right.
    pub fn finish(&self, lot: Lot<'_>) -> Result<()> {
        let Some(ground) = lot.ground else { return Ok(()) };
        ground.green()?;
        ground.agrees()
    }

    /// Tries alterations of the bench's file with these checks and topics of the lot, or with all.
    pub fn kernels<'s>(
        &'s self,
        lot: &mut Lot<'s>,
        bench: &Bench,
        checks: &[String],
        mutants: &[&Mutant],
    ) -> Result<()> {
        let original = bench.compile(bench.original())?.map_err(unaltered)?;
        let kernel = bench.link()?.map_err(unaltered)?;
        let kernel = keep(bench, &kernel, &self.directory.join("unaltered"))?;
        let is_followed = self.options.whole && self.lockstep.targets.contains(&lot.target.name);
        let ground = self.ground(lot, || Ok(kernel.clone()), is_followed)?;
        let mut twins = Vec::new();
        self.pipeline(ground, checks, |send| {
            let mut tried: HashMap<String, &str> = HashMap::new();
            for (number, mutant) in mutants.iter().enumerate() {
                let settle = |outcome| self.settle(mutant, ground, outcome, None);
                let object = match bench.compile(&mutant.apply(bench.original()))? {
                    Ok(object) if object == original => {
                        settle(Outcome::SameCode);
                        continue;
                    }
                    Ok(object) => hash::bytes(&object),
                    Err(why) => {
                        settle(Outcome::Invalid { why });
                        continue;
                    }
                };
                if let Some(first) = tried.get(&object) {
                    twins.push((*mutant, (*first).to_string()));
                    continue;
                }
                tried.insert(object, &mutant.id);
                let altered = match bench.link()? {
                    Ok(altered) => {
                        keep(bench, &altered, &self.directory.join(format!("kernel-{number}")))?
                    }
                    Err(why) => {
                        settle(Outcome::Invalid { why });
                        continue;
                    }
                };
                if same(&altered, &kernel)? {
                    let message = format!("`{}` was built, but the kernel is unchanged", mutant.id);
                    return Err(Error::unavailable(Phase::Build, message));
                }
                if !send(Job { mutant, kernel: Some(altered), suite: None }) {
                    break;
                }
            }
            Ok(())
        })?;
        // Mutants that compile to identical code share one outcome.
        for (mutant, first) in twins {
            let first = self.record().find(&first).cloned();
            if let Some(Entry { outcome, lockstep, .. }) = first {
                self.settle(mutant, ground, outcome, lockstep);
            }
        }
        bench.compile(bench.original())?.map_err(unaltered).map(drop)
    }

    /// Tries alterations of the library on the target's own kernel.
    pub fn library<'s>(
        &'s self,
        lot: &mut Lot<'s>,
        checks: &[String],
        mutants: &[Mutant],
    ) -> Result<()> {
        let target = lot.target;
        let kernel = || Ok(self.session.kernel(target)?.file);
        let ground = self.ground(lot, kernel, false)?;
        self.pipeline(ground, checks, |send| {
            for mutant in mutants {
                let file = self.copy.build(mutant, target.triple())?;
                let suite = ground.task(&file)?;
                if suite.content() == ground.suite.content() {
                    self.settle(mutant, ground, Outcome::SameCode, None);
                } else if !send(Job { mutant, kernel: None, suite: Some(suite) }) {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Returns the lot's ground. Makes it on this unaltered kernel if the lot has none yet.
    fn ground<'s, 'l>(
        &'s self,
        lot: &'l mut Lot<'s>,
        kernel: impl FnOnce() -> Result<PathBuf>,
        is_followed: bool,
    ) -> Result<&'l Ground<'s>> {
        let Self { session, directory, options, copy, .. } = self;
        let Lot { target, checks, ground } = lot;
        if let Some(ground) = ground {
            return Ok(ground);
        }
        let (suite, whole) = (copy.unaltered(target.triple())?, options.whole);
        let mut made = Ground::new(session, target, kernel()?, &suite, directory, checks, whole)?;
        made.introduce(&mut self.record());
        if is_followed {
            made.accompany(self.lockstep)?;
        }
        Ok(ground.insert(made))
    }

    /// Starts workers. They judge the jobs that `make` sends, by these checks and topics. Sending
    /// fails after the workers have stopped.
    fn pipeline<'m>(
        &self,
        ground: &Ground<'_>,
        checks: &[String],
        make: impl FnOnce(&dyn Fn(Job<'m>) -> bool) -> Result<()>,
    ) -> Result<()> {
        let order = ground.chosen(checks)?;
        let (sender, jobs) = sync_channel::<Job<'m>>(1);
        let jobs = Mutex::new(jobs);
        let failed = AtomicBool::new(false);
        let work = |number| loop {
            let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
            let Ok(Job { mutant, kernel, suite }) = next else { return Ok(()) };
            let places = |red: &[String]| self.record().places(red);
            let first =
                if ground.whole { Vec::new() } else { self.record().killers(&order, FIRST) };
            let suite = suite.as_ref().unwrap_or(&ground.suite);
            let outcome = ground.judge(&order, &first, kernel.as_deref(), suite, number, places)?;
            // Another target may have judged the mutant before.
            let earlier = self.record().find(&mutant.id).and_then(|entry| entry.lockstep.clone());
            let lockstep = match (earlier, &kernel) {
                (None, Some(kernel)) => ground.lockstep(kernel, &number.to_string())?,
                (earlier, _) => earlier,
            };
            let kept = kernel.iter().filter_map(|kernel| kernel.parent());
            kept.for_each(|directory| drop(fs::remove_dir_all(directory)));
            self.settle(mutant, ground, outcome, lockstep);
        };
        let work = |number| {
            let done = work(number);
            if done.is_err() {
                failed.store(true, Ordering::Relaxed);
                // The sender may wait for a worker, and this may be the last one.
                let jobs = jobs.lock().unwrap_or_else(PoisonError::into_inner);
                jobs.iter().for_each(drop);
            }
            done
        };
        let guests = self.guests(ground.target);
        thread::scope(|scope| {
            let work = &work;
            let workers: Vec<_> =
                (0..guests).map(|number| scope.spawn(move || work(number))).collect();
            let made = make(&|job| !failed.load(Ordering::Relaxed) && sender.send(job).is_ok());
            drop(sender);
            let join = |worker: thread::ScopedJoinHandle<'_, Result<()>>| {
                worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
            };
            let ran: Vec<Result<()>> = workers.into_iter().map(join).collect();
            made.and(ran.into_iter().collect::<Result<()>>())
        })
    }

    /// The number of parallel guests. On User-Mode Linux, most checks of an alteration wait.
    fn guests(&self, target: &Target) -> u32 {
        let processors = parallel::processors() as u32;
        let usual = if target.kind == Kind::Uml { processors * 5 } else { processors };
        let asked = self.options.guests.unwrap_or(usual);
        match target.smp {
            1 => asked,
            // Races need processors of their own.
            smp => (processors / smp).clamp(1, asked),
        }
    }

    /// Adds the time since the last outcome to the record, in whole seconds.
    fn count(&self, record: &mut Record, is_mutant: bool) {
        let mut counted = self.counted.lock().unwrap_or_else(PoisonError::into_inner);
        let passed = Duration::from_secs(counted.elapsed().as_secs());
        let seconds =
            if is_mutant { &mut record.mutants_seconds } else { &mut record.named_seconds };
        *seconds += passed.as_secs();
        *counted += passed;
    }

    /// Records an alteration's outcome and prints it.
    fn settle(
        &self,
        mutant: &Mutant,
        ground: &Ground<'_>,
        mut outcome: Outcome,
        lockstep: Option<Lockstep>,
    ) {
        let mut record = self.record();
        if let Outcome::Ended { why, .. } = &mut outcome {
            *why = in_tree(why, &record.file);
        }
        let word = match &outcome {
            Outcome::Killed { red, unseen: 0 } => format!("killed, {} red", red.len()),
            Outcome::Killed { red, unseen } => {
                format!("killed, {} red, {unseen} not seen", red.len())
            }
            Outcome::Ended { why, .. } => format!("ended: {why}"),
            Outcome::Undetected => "UNDETECTED".into(),
            Outcome::SameCode => "same code".into(),
            Outcome::Invalid { why } => format!("invalid: {why}"),
        };
        let Mutant { id, function, line, digest, .. } = mutant.clone();
        let also = match &lockstep {
            None => String::new(),
            Some(Lockstep::Agreed) => "; lockstep agrees".into(),
            Some(Lockstep::Parted) => "; lockstep parts".into(),
            Some(Lockstep::Ended(why)) => format!("; lockstep ended: {why}"),
        };
        eprintln!("{} s: {id}: {word}{also}", self.started.elapsed().as_secs());
        let on = ground.target.name.clone();
        self.count(&mut record, digest.is_empty());
        record.put(Entry { id, place: function, line, on, digest, outcome, lockstep }, &self.order);
        if let Some(file) = &self.options.report {
            // A failed write is repeated with the next outcome.
            let _ = fs::write(file, record.to_json());
        }
    }
}

fn unaltered(why: String) -> Error {
    Error::unavailable(Phase::Build, format!("the unaltered file does not build: {why}"))
}

/// Makes the quoted source paths of a kernel message relative to the tree. `file` is the path of any
/// file, relative to the tree.
pub(super) fn in_tree(message: &str, file: &str) -> String {
    let top = format!("/{}/", file.split('/').next().unwrap_or_default());
    let cut = |part: &str| match part.find(&top) {
        Some(end) if part.starts_with('/') => part[end + 1..].to_string(),
        _ => part.to_string(),
    };
    message.split('"').map(cut).collect::<Vec<_>>().join("\"")
}

fn same(one: &Path, other: &Path) -> Result<bool> {
    let read = |path: &Path| fs::read(path).or_unavailable(Phase::Build, path.display());
    Ok(read(one)? == read(other)?)
}

/// Copies the kernel and what belongs beside it, because the next link would replace it.
fn keep(bench: &Bench, kernel: &Path, directory: &Path) -> Result<PathBuf> {
    let _ = fs::remove_dir_all(directory);
    fs::create_dir_all(directory).or_unavailable(Phase::Build, directory.display())?;
    let copy = |from: &Path, name: &OsStr| {
        let to = directory.join(name);
        fs::copy(from, &to).or_unavailable(Phase::Build, to.display()).map(|_| to)
    };
    for file in bench.beside().iter().filter(|file| *file != kernel) {
        copy(file, file.file_name().unwrap_or_default())?;
    }
    copy(kernel, OsStr::new("kernel"))
}
