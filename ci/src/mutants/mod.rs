//! `mutants`: proves that the suite's checks can fail.
//!
//! Each alteration changes one file of a kernel or of the library that the suite links. It is
//! compiled, linked and booted, and the checks that it names must fail. NetBSD's kernels come from
//! the user's tree and command.

mod alteration;
mod judge;
mod library;

pub use alteration::Alteration;

use crate::cli::MutantsOptions;
use judge::Judge;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result, STATUS_FAILED, STATUS_PASSED};
use kcov_vm::kernel::{self, AlteredTree};
use kcov_vm::netbsd;
use kcov_vm::output::{no_verdict, print};
use kcov_vm::session::{Session, Task};
use kcov_vm::target::{Kind, Target, Targets};
use kcov_vm::{ids, parallel};
use library::Library;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::sync_channel;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use std::{fs, thread};

/// The number of targets that are tried at the same time.
const TARGETS: usize = 2;

/// An altered kernel or suite to judge.
struct Job<'a> {
    alteration: &'a Alteration,
    kernel: PathBuf,
    suite: Task,
}

/// The options, and the results so far.
struct Run<'a> {
    session: &'a Session,
    /// The tree of NetBSD's sources.
    tree: Option<&'a Path>,
    options: &'a MutantsOptions,
    directory: PathBuf,
    started: Instant,
    /// The numbers of alterations that are as described, and that are not.
    counts: Mutex<[usize; 2]>,
}

/// Tries the alterations and reports.
pub fn run(
    session: &Session,
    chosen: &[Alteration],
    tree: Option<&Path>,
    options: &MutantsOptions,
) -> Result<u8> {
    let lock = session.cache.lock(Phase::Image, "mutants")?;
    let directory = session.cache.at("runs").join("mutants");
    let _ = fs::remove_dir_all(&directory);
    let (started, counts) = (Instant::now(), Mutex::default());
    let run = Run { session, tree, options, directory, started, counts };
    let mut all: BTreeMap<&str, Vec<&Alteration>> = BTreeMap::new();
    for alteration in chosen {
        all.entry(&alteration.on).or_default().push(alteration);
    }
    let targets = all.keys().map(|name| session.targets.named(name));
    let mut targets = targets.collect::<Result<Vec<_>>>()?;
    // `parallel::run` starts with the last one, which should be the longest.
    targets.sort_by_key(|target| all[&*target.name].len());
    // Races need all processors.
    let (several, one): (Vec<_>, Vec<_>) = targets.into_iter().partition(|target| target.smp > 1);
    let mut results = Vec::new();
    // Linking a kernel keeps only one processor busy, so another target is tried at the same time.
    for (targets, at_once) in [(one, TARGETS), (several, 1)] {
        let try_one = |target: &Target| run.target(target, &all[&*target.name]);
        parallel::run(&targets, at_once, try_one, |at, result| results.push((targets[at], result)));
    }
    let mut missing = STATUS_PASSED;
    for (target, result) in results {
        match result {
            // Other targets do not need it.
            Err(error @ Error::NotGiven(_)) => missing = no_verdict(target, error)?,
            result => result?,
        }
    }
    drop(lock);
    let [right, wrong] = *locked(&run.counts);
    let seconds = run.started.elapsed().as_secs();
    print(&format!("{right} alterations as described, {wrong} not, in {seconds} s\n"));
    Ok(missing.max(if wrong == 0 { STATUS_PASSED } else { STATUS_FAILED }))
}

/// Returns the alterations that the words and checks select. A word is a target or a part of a
/// name.
pub fn select(
    all: Vec<Alteration>,
    options: &MutantsOptions,
    known: &Targets,
) -> Result<Vec<Alteration>> {
    let is_target = |word: &str| all.iter().any(|one| one.on == word);
    let (targets, words): (Vec<&String>, Vec<&String>) =
        options.names.iter().partition(|word| is_target(word));
    let of_target = |one: &&Alteration| match targets.as_slice() {
        [] => is_usual(one, known),
        targets => targets.iter().any(|name| **name == one.on),
    };
    let there: Vec<&Alteration> = all.iter().filter(of_target).collect();
    if let Some(word) = words.iter().find(|word| !there.iter().any(|one| one.name.contains(**word)))
    {
        return Err(Error::usage(format!("no alteration has `{word}` in its name")));
    }
    let is_named = |one: &Alteration| {
        words.is_empty() || words.iter().any(|word| one.name.contains(word.as_str()))
    };
    let mut chosen: Vec<Alteration> =
        there.into_iter().filter(|one| is_named(one)).cloned().collect();
    if !options.checks.is_empty() {
        let is_wanted = |id: &String| options.checks.iter().any(|word| ids::matches(word, id));
        for one in &mut chosen {
            one.red.retain(is_wanted);
            one.ends.retain(is_wanted);
        }
        chosen.retain(|one| !one.red.is_empty() || !one.ends.is_empty());
        if chosen.is_empty() {
            let checks = options.checks.join(", ");
            return Err(Error::usage(format!("--check: no alteration names {checks}")));
        }
    }
    Ok(chosen)
}

/// Whether the command tries an alteration if the user names no target. It does so for released Linux
/// kernels on x86. Kernels of other architectures take long to build, some proposals need a compiler
/// that the runner does not install, and NetBSD needs the user's source tree.
fn is_usual(one: &Alteration, known: &Targets) -> bool {
    known.named(&one.on).is_ok_and(|target| {
        target.kind != Kind::Netbsd && target.arch.is_x86() && target.patches.is_empty()
    })
}

impl Run<'_> {
    /// Tries alterations on their target.
    fn target(&self, target: &Target, alterations: &[&Alteration]) -> Result<()> {
        let mut checks: Vec<String> = Vec::new();
        let mut files: BTreeMap<&str, Vec<&Alteration>> = BTreeMap::new();
        let mut of_library = Vec::new();
        for one in alterations {
            checks.extend(one.red.iter().chain(&one.ends).cloned());
            match one.is_of_library() {
                true => of_library.push(*one),
                false => files.entry(&one.file).or_default().push(*one),
            }
        }
        checks.sort();
        checks.dedup();
        let mut judge = None;
        for (file, alterations) in files {
            let bench = self.open(target, file)?;
            let judge = match &judge {
                Some(judge) => judge,
                None => judge.insert(self.judge(target, Some(&*bench), &checks)?),
            };
            self.kernels(judge, &*bench, &alterations)?;
        }
        if of_library.is_empty() {
            return Ok(());
        }
        let judge = match judge {
            Some(judge) => judge,
            None => self.judge(target, None, &checks)?,
        };
        let library = Library::open(&self.session.cache, &self.session.programs)?;
        self.pipeline(&judge, |send| {
            for alteration in of_library {
                match library.build(alteration, target.triple())? {
                    Ok(file) => {
                        let (kernel, suite) = (judge.kernel.clone(), judge.task(&file)?);
                        send(Job { alteration, kernel, suite });
                    }
                    Err(why) => self.settle(alteration, &[why]),
                }
            }
            Ok(())
        })
    }

    /// Builds and judges alterations of the bench's file.
    fn kernels(
        &self,
        judge: &Judge<'_>,
        bench: &dyn AlteredTree,
        alterations: &[&Alteration],
    ) -> Result<()> {
        self.pipeline(judge, |send| {
            for (number, alteration) in alterations.iter().enumerate() {
                let built = match alteration.apply(bench.original()) {
                    Ok(text) => bench.build(&text)?,
                    Err(why) => Err(why),
                };
                match built {
                    Ok(kernel) => {
                        let directory = judge.directory.join(format!("kernel-{number}"));
                        let kernel = keep(bench, &kernel, &directory)?;
                        send(Job { alteration, kernel, suite: judge.suite.clone() });
                    }
                    Err(why) => self.settle(alteration, &[why]),
                }
            }
            Ok(())
        })
    }

    /// Prepares the target with its unaltered kernel and suite. Uses the bench's kernel if there is one.
    fn judge<'t>(
        &'t self,
        target: &'t Target,
        bench: Option<&dyn AlteredTree>,
        checks: &[String],
    ) -> Result<Judge<'t>> {
        let directory = self.directory.join(&target.name);
        let kernel = match bench {
            Some(bench) => {
                let kernel = bench.build(bench.original())?;
                let kernel = kernel.map_err(|why| {
                    let why = format!("the unaltered file does not build: {why}");
                    Error::unavailable(Phase::Build, why)
                })?;
                keep(bench, &kernel, &directory.join("unaltered"))?
            }
            None => self.session.kernel(target)?.file,
        };
        let suite = self.session.programs.suite_for(target.triple())?;
        Judge::new(self.session, target, kernel, &suite, directory, checks)
    }

    /// Judges the jobs that `make` sends, while it builds the next. An error drops the rest.
    fn pipeline<'m>(
        &self,
        judge: &Judge<'_>,
        make: impl FnOnce(&dyn Fn(Job<'m>)) -> Result<()>,
    ) -> Result<()> {
        let (sender, jobs) = sync_channel::<Job<'m>>(1);
        let (jobs, failed) = (Mutex::new(jobs), Mutex::new(None));
        let work = |number| {
            loop {
                let next = locked(&jobs).recv();
                let Ok(Job { alteration, kernel, suite }) = next else { return };
                if locked(&failed).is_some() {
                    continue;
                }
                match judge.verdict(alteration, &kernel, &suite, number) {
                    Ok(wrong) => self.settle(alteration, &wrong),
                    Err(error) => *locked(&failed) = Some(error),
                }
                if kernel != judge.kernel {
                    let _ = kernel.parent().map(fs::remove_dir_all);
                }
            }
        };
        thread::scope(|scope| {
            let work = &work;
            for number in 0..guests(judge.target) {
                scope.spawn(move || work(number));
            }
            // Nobody drops the receiver before the sender.
            let made = make(&|job| drop(sender.send(job)));
            drop(sender);
            made
        })?;
        failed.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
    }

    fn open(&self, target: &Target, file: &str) -> Result<Box<dyn AlteredTree>> {
        let Self { session, tree, options, .. } = self;
        if target.kind != Kind::Netbsd {
            let source = session.source(target)?;
            return Ok(Box::new(kernel::Bench::open(target, &source, &session.cache, file)?));
        }
        netbsd::given(true, session.programs.netbsd.is_some())?;
        let tree = tree.ok_or_else(|| {
            Error::usage("--source: needs the tree of NetBSD's sources; see `--help`")
        })?;
        let command = options.command.clone().filter(|command| command.contains("{kernel}"));
        let command = command.ok_or_else(|| {
            let why = "--build: needs a command that leaves a kernel at {kernel}; see `--help`";
            Error::usage(why)
        })?;
        let recipe = netbsd::BenchRecipe { tree: tree.to_path_buf(), command };
        Ok(Box::new(netbsd::Bench::open(&recipe, file, &session.cache)?))
    }

    /// Prints an alteration's result.
    fn settle(&self, alteration: &Alteration, wrong: &[String]) {
        let Alteration { name, on, red, .. } = alteration;
        locked(&self.counts)[usize::from(!wrong.is_empty())] += 1;
        print(&match wrong {
            [] if red.is_empty() => format!("    ok   {on}: {name}: the kernel ends\n"),
            [] => format!("    ok   {on}: {name}: {} red\n", red.len()),
            wrong => format!("    FAIL {on}: {name}: {}\n", wrong.join("; ")),
        });
    }
}

/// The number of parallel guests. On User-Mode Linux many checks of an altered kernel wait. Races
/// need processors of their own.
fn guests(target: &Target) -> usize {
    let processors = parallel::processors();
    match (target.smp as usize, target.kind) {
        (1, Kind::Uml) => processors * 3,
        (smp, _) => (processors / smp).max(1),
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Copies the kernel and what belongs beside it, because the next link would replace it.
fn keep(bench: &dyn AlteredTree, kernel: &Path, directory: &Path) -> Result<PathBuf> {
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

#[cfg(test)]
mod tests;
