//! `fuzz`: runs a fuzzer of kernel interfaces in guests. The corpus and the crashes stay on the host.

mod guests;
mod memory;
mod minimize;
mod report;
mod store;

use crate::cache;
use crate::cli::FuzzOptions;
use crate::console::complaints;
use crate::error::{Error, OrUnavailable as _, Phase, Result, STATUS_FAILED, STATUS_PASSED};
use crate::exec::task;
use crate::guest::make_idle;
use crate::output::{no_verdict, print};
use crate::parallel::processors;
use crate::session::Session;
use crate::target::Target;
use guests::{Death, Ended, Guests, Work};
use kcov_vm_guest::fuzz::{Line, Progress, name};
use report::Report;
use serde_json::Value;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use store::Store;

/// The most inputs of a group that are tried again until one dies alone.
const TRIES: usize = 4;

/// The interval between two lines of progress.
const INTERVAL: Duration = Duration::from_secs(10);
/// The interval for looking whether the guests are done.
const TICK: Duration = Duration::from_millis(100);

/// The group of inputs that the fuzzer itself finds crashes, such as a child's death.
const OWN: &str = "found-by-the-fuzzer";

/// Runs the fuzzer. The exit status is 1 if there was a crash.
pub fn fuzz(session: &Session, options: FuzzOptions) -> Result<u8> {
    let target = session.targets.named(&options.run.name)?;
    match run(session, target, options) {
        Ok(crashes) => Ok(if crashes > 0 { STATUS_FAILED } else { STATUS_PASSED }),
        Err(error) => no_verdict(target, error),
    }
}

fn run(session: &Session, target: &Target, options: FuzzOptions) -> Result<u64> {
    let FuzzOptions { dir, guests, seconds, sync, deaths, seed, foreground, .. } = options;
    let task = task(session, target, &options.run, None)?;
    let directory = dir.unwrap_or_else(|| PathBuf::from("fuzz").join(&target.name));
    let unusable = |error| Error::usage(format!("--dir {}: {error}", directory.display()));
    let store = Store::open(&directory).map_err(unusable)?;
    let corpus = store.inputs().map_err(unusable)?;
    let ready = session.prepare(target)?;
    let vmlinux = ready.vmlinux();
    let kernel = store::kernel(&target.name, &vmlinux);
    let reached = store.reached(&kernel).map_err(unusable)?;
    let logs = ready.logs.clone();
    let count = guests.map_or_else(
        || (processors() / target.smp.max(1) as usize).max(1),
        |guests| guests as usize,
    );
    print(&format!(
        "{}: {}, guests {count}, inputs {} in {}\n",
        target.name,
        ready.accelerator,
        corpus.len(),
        directory.display()
    ));
    let state = State {
        corpus,
        reached,
        next_seed: seed,
        running: vec![Progress::default(); count],
        start: Some(Instant::now()),
        news: Some(Instant::now()),
        ..State::default()
    };
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // The second one has its usual effect.
        flag::register_conditional_default(signal, stop.clone())
            .and_then(|_| flag::register(signal, stop.clone()))
            .or_unavailable(Phase::Program, "signals")?;
    }
    if !foreground {
        make_idle().or_unavailable(Phase::Program, "the idle priority")?;
    }
    let fuzzer = Fuzzer {
        guests: Guests { session, target, ready, task, stop },
        store,
        vmlinux,
        kernel,
        end: seconds.map(|seconds| Instant::now() + Duration::from_secs(seconds)),
        sync: Duration::from_secs(sync),
        most_deaths: deaths.unwrap_or(u64::MAX),
        state: Mutex::new(state),
    };
    fuzzer.all(count)?;
    let state = fuzzer.state();
    print(&format!("{state}\n"));
    if !state.reached.is_empty() {
        let (coverage, vmlinux) = (fuzzer.store.coverage(), fuzzer.vmlinux.display());
        print(&format!(
            "{} program counters: kcov-trace --read {} --vmlinux {vmlinux}\n",
            state.reached.len(),
            coverage.display()
        ));
    }
    for (group, deaths) in &state.groups {
        print(&format!("{deaths:>6} {group}\n"));
    }
    // Nothing went wrong that the logs could explain.
    let _ = std::fs::remove_dir_all(&logs);
    Ok(state.groups.values().sum())
}

struct Fuzzer<'a> {
    guests: Guests<'a>,
    store: Store,
    /// The kernel's file with symbols.
    vmlinux: PathBuf,
    /// The kernel in the file of coverage.
    kernel: Value,
    end: Option<Instant>,
    /// The life of a guest; the next one starts from all guests' inputs.
    sync: Duration,
    most_deaths: u64,
    state: Mutex<State>,
}

/// What the guests did.
#[derive(Default)]
struct State {
    corpus: Vec<Vec<u8>>,
    /// How many guests the mutants of an input have killed, by its name.
    deadly: HashMap<u64, u64>,
    /// The program counters reached.
    reached: BTreeSet<u64>,
    next_seed: u64,
    start: Option<Instant>,
    /// The executions of guests that have ended.
    executions: u64,
    /// The progress of each guest.
    running: Vec<Progress>,
    /// The largest number of signals of any guest.
    signals: u64,
    deaths: u64,
    groups: BTreeMap<String, u64>,
    /// How many inputs of a group were tried again. Only the last one may have died again.
    tried: BTreeMap<String, usize>,
    /// When the last new input or group came.
    news: Option<Instant>,
    failure: Option<Error>,
}

impl State {
    /// Takes a line of a guest's fuzzer.
    fn take(&mut self, number: usize, line: Line, store: &Store) {
        match line {
            Line::Progress(progress) => {
                self.running[number] = progress;
                self.signals = self.signals.max(progress.signals);
            }
            Line::Reached(pcs) => self.reached.extend(pcs),
            // Those belong to replays.
            Line::Smaller(_) | Line::Text(_) => {}
            Line::Crashed(input) => {
                let text = String::new();
                let report = Report { group: OWN.into(), title: OWN.into(), text };
                match store.save(Some(&input), &report, &[]) {
                    Ok(_) => *self.groups.entry(OWN.into()).or_default() += 1,
                    Err(error) => self.fail("a crash", &error),
                }
            }
            Line::Found(input) => self.add(input, store),
            Line::Replaced(old, input) => {
                // Remove the old input last: a runner killed in between loses nothing.
                self.add(input, store);
                let place = self.corpus.iter().position(|input| name(input) == old);
                let removed =
                    place.map_or(Ok(()), |place| store.remove(&self.corpus.remove(place)));
                removed.unwrap_or_else(|error| self.fail("an input of the corpus", &error));
            }
        }
    }

    /// Adds an input to the corpus.
    fn add(&mut self, input: Vec<u8>, store: &Store) {
        match store.add(&input) {
            Ok(true) => {
                self.corpus.push(input);
                self.news = Some(Instant::now());
            }
            Ok(false) => {}
            Err(error) => self.fail("an input of the corpus", &error),
        }
    }

    /// Ends everything, because this cannot be saved.
    fn fail(&mut self, what: &str, error: &std::io::Error) {
        let error = Error::unavailable(Phase::Output, format!("{what}: {error}"));
        self.failure.get_or_insert(error);
    }

    /// Splits the corpus for a guest into the inputs that it mutates and those that it only runs. An
    /// input whose mutants have killed n guests is mutated in one of n + 1 guests. Otherwise guests
    /// would mostly die of known crashes.
    fn share(&self, seed: u64) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
        let is_awake = |input: &Vec<u8>| {
            let own = name(input);
            let deaths = self.deadly.get(&own).copied().unwrap_or(0);
            // The low bits of the name are less random.
            let chance = name(&[seed.to_le_bytes(), own.to_le_bytes()].concat()) >> 32;
            chance % (deaths + 1) == 0
        };
        self.corpus.iter().cloned().partition(is_awake)
    }

    /// Adds the executions of a guest that has ended.
    fn settle(&mut self, number: usize) {
        self.executions += std::mem::take(&mut self.running[number]).executions;
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let executions =
            self.executions + self.running.iter().map(|progress| progress.executions).sum::<u64>();
        let since = |time: Option<Instant>| time.map_or(0, |time| time.elapsed().as_secs());
        let seconds = since(self.start).max(1);
        write!(
            f,
            "{seconds} s: {executions} executions, {}/s, {} inputs, {} signals, deaths {}, groups {}, \
             last find {} s ago",
            executions / seconds,
            self.corpus.len(),
            self.signals,
            self.deaths,
            self.groups.len(),
            since(self.news)
        )
    }
}

impl Fuzzer<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        // Each change is whole, so a thread that panicked left nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs all guests to the end, and prints progress.
    fn all(&self, count: usize) -> Result<()> {
        thread::scope(|scope| {
            let workers: Vec<_> =
                (0..count).map(|number| scope.spawn(move || self.work(number))).collect();
            let mut printed = Instant::now();
            while workers.iter().any(|worker| !worker.is_finished()) {
                thread::sleep(TICK);
                if printed.elapsed() >= INTERVAL {
                    printed = Instant::now();
                    print(&format!("{}\n", self.state()));
                }
            }
        });
        self.state().failure.take().map_or(Ok(()), Err)
    }

    /// Runs one guest after another.
    fn work(&self, number: usize) {
        while let Some((seed, time)) = self.next() {
            if let Err(error) = self.one(number, seed, time) {
                self.state().failure.get_or_insert(error);
            }
        }
    }

    /// The seed and the life of the next guest; `None` at the end.
    fn next(&self) -> Option<(u64, Duration)> {
        let mut state = self.state();
        let is_over = self.guests.is_stopped() || state.deaths >= self.most_deaths;
        if is_over || state.failure.is_some() {
            return None;
        }
        let left = self.end.map_or(self.sync, |end| end.saturating_duration_since(Instant::now()));
        if left.is_zero() {
            return None;
        }
        state.next_seed = state.next_seed.wrapping_add(1);
        Some((state.next_seed, left.min(self.sync).max(Duration::from_secs(1))))
    }

    fn one(&self, number: usize, seed: u64, time: Duration) -> Result<()> {
        let (corpus, resting) = self.state().share(seed);
        let work = Work::Fuzz { corpus: &corpus, resting: &resting, seed, time };
        let mut has_spoken = false;
        let ended = self.guests.run(number, work, &mut |line| {
            has_spoken = true;
            self.state().take(number, line, &self.store);
        });
        let reached = {
            let mut state = self.state();
            state.settle(number);
            state.reached.clone()
        };
        if !reached.is_empty() {
            let saved = self.store.save_reached(&self.kernel, &reached);
            saved
                .map_err(|error| Error::unavailable(Phase::Output, format!("coverage: {error}")))?;
        }
        match ended? {
            Ended::Properly => Ok(()),
            // The kernel may end the first input, and free its memory, before the host has seen it.
            Ended::Died(death)
                if death.ran.is_none()
                    && !has_spoken
                    && complaints(&death.console, self.guests.target.kind.system()).is_empty() =>
            {
                let message = format!("no input ran: {}", death.why);
                Err(Error::unavailable(Phase::Program, message))
            }
            Ended::Died(death) => self.died(number, &death),
        }
    }

    /// Saves a death. Tries inputs of its group again until one dies alone.
    fn died(&self, number: usize, death: &Death) -> Result<()> {
        let system = self.guests.target.kind.system();
        let report = Report::new(&death.console, system, &death.why, &self.vmlinux);
        let unsaved = |error| Error::unavailable(Phase::Output, format!("a crash: {error}"));
        let input = death.ran.as_ref().map(|ran| &ran.input[..]);
        let saved = self.store.save(input, &report, &death.console).map_err(unsaved)?;
        {
            let mut state = self.state();
            state.deaths += 1;
            if let Some(parent) = death.ran.as_ref().and_then(|ran| ran.parent) {
                *state.deadly.entry(parent).or_default() += 1;
            }
            state.corpus.retain(|saved| Some(&saved[..]) != input);
            *state.groups.entry(report.group.clone()).or_default() += 1;
            if saved.is_new {
                state.news = Some(Instant::now());
            }
        }
        let group = &report.group;
        let may_try = saved.is_new
            || saved.directory.join("again").exists() && {
                // Another input of a group of which none has died again.
                let tried = self.state().tried.get(group).copied().unwrap_or_default();
                tried < TRIES && !saved.directory.join("input.min").exists()
            };
        let Some(input) = input.filter(|_| may_try) else { return Ok(()) };
        *self.state().tried.entry(group.clone()).or_default() += 1;
        if saved.is_new {
            print(&format!("new: {}: {}\n", saved.directory.display(), report.title));
        } else {
            let _ = fs::remove_file(saved.directory.join("again"));
        }
        let said = match minimize::again(&self.guests, number, input, group)? {
            Ok(told) => {
                let smallest = minimize::minimize(&self.guests, number, told, group, self.end)?;
                let save = |name: &str, bytes: &[u8]| {
                    cache::keep(&saved.directory.join(name), bytes).map_err(unsaved)
                };
                save("input", input)?;
                save("input.min", &smallest.bytes)?;
                if let Some(text) = &smallest.text {
                    save("input.txt", text.as_bytes())?;
                }
                let text = smallest.text.as_deref().unwrap_or_default().trim_end();
                let text = text.lines().map(|line| format!("\n    {line}")).collect::<String>();
                let (needed, all) = (smallest.bytes.len(), input.len());
                let smaller = match needed < all {
                    true => format!("{needed} of {all} bytes are needed"),
                    false => format!("none of its {all} bytes was left out"),
                };
                format!("dies again; {smaller}{text}")
            }
            Err(said) => said,
        };
        cache::keep(&saved.directory.join("again"), format!("{said}\n")).map_err(unsaved)?;
        print(&format!("new: {group}: {said}\n"));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_inputs_replace_others() {
        let directory = tempfile::tempdir().unwrap();
        let store = Store::open(directory.path()).unwrap();
        let mut state = State::default();
        for found in [&b"long one"[..], b"other"] {
            state.take(0, Line::Found(found.to_vec()), &store);
        }
        state.take(0, Line::Replaced(name(b"long one"), b"one".to_vec()), &store);
        state.take(0, Line::Replaced(name(b"unknown"), b"new".to_vec()), &store);
        assert_eq!(state.corpus, [&b"other"[..], b"one", b"new"]);
        assert_eq!(store.inputs().unwrap().len(), 3);
        assert!(state.failure.is_none());
    }

    #[test]
    fn inputs_from_which_deaths_come_rest_in_most_guests() {
        let state = State {
            corpus: [&b"none"[..], b"one", b"many"].map(<[u8]>::to_vec).into(),
            deadly: [(name(b"one"), 1), (name(b"many"), 9)].into(),
            ..State::default()
        };
        let mut awake = [0; 3];
        for seed in 0..6400 {
            let (active, resting) = state.share(seed);
            assert_eq!(active.len() + resting.len(), 3);
            for (input, count) in state.corpus.iter().zip(&mut awake) {
                *count += u32::from(active.contains(input));
            }
        }
        assert!(awake[0] == 6400, "{awake:?}");
        assert!((2900..3500).contains(&awake[1]) && (550..750).contains(&awake[2]), "{awake:?}");
    }
}
