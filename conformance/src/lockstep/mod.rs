//! Lockstep: the kernel and the model execute random operations until they diverge.
//!
//! The operations of a seed are divided into runs. Each run has its own tree of processes, which
//! starts with one thread and is killed in the end. This process tells one thread at a time what to
//! do, over a socket, and asks the model for the possible outcomes. The model allows for the
//! kernel's deferred work; nothing here sleeps to wait for it.
//!
//! Libraries for state machine tests do not fit: they generate a whole sequence from the model
//! alone. Here the model's next state depends on the kernel's answers, and each attempt to shorten
//! a sequence needs a new tree of processes.

mod channel;
mod frame;
pub(crate) mod generate;
mod real;
mod worker;

pub use generate::Generator;

use crate::feature::Feature;
use crate::raw::word_bytes;
pub(crate) use crate::system::lockstep as system;
use channel::Patience;
use frame::Frame;
use kcov_model::{Operation, Outcome, WORD, Work, World};
use real::Stage;
use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io;
use std::path::Path;
use std::time::{Duration, Instant};
use system::Driver;

#[derive(Debug)]
struct Divergence {
    /// The operations. The last one diverges.
    operations: Vec<Operation>,
    /// The model's outcomes of all but the last.
    expected: Vec<Outcome>,
    /// The outcomes that the model allows for the last operation.
    allowed: Vec<Outcome>,
    seen: Outcome,
}

impl fmt::Display for Divergence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (last, before) = self.operations.split_last().expect("an operation");
        for (operation, outcome) in before.iter().zip(&self.expected) {
            writeln!(f, "{operation:?} -> {outcome:?}")?;
        }
        write!(f, "{last:?} -> one of {:?}; the kernel: {:?}", self.allowed, self.seen)
    }
}

/// A kernel and its model.
#[derive(Debug)]
pub struct Lockstep {
    stage: Stage,
    model: Driver,
    works: Vec<Work>,
}

/// The number of times that a thread is given time to come to rest.
const PATIENCE: u32 = 20_000;

/// The time to shorten a sequence. A kernel that hangs makes each attempt take long.
const LIMIT: Duration = Duration::from_secs(120);

impl Lockstep {
    /// Prepares for the running kernel. The calling process must have only one thread.
    pub fn new(device: &Path, features: &[Feature]) -> Result<Lockstep, String> {
        if !features.contains(&Feature::Instrumented) {
            return Err("the kernel's code is not instrumented, so it records nothing".to_owned());
        }
        if word_bytes() as u64 != WORD {
            return Err("this kernel's words have 32 bits; lockstep needs 64".to_owned());
        }
        Ok(Lockstep {
            stage: Stage::new(device)?,
            model: system::driver(features)?,
            works: system::works(features),
        })
    }

    /// Executes this many operations and reports progress, and the shortened sequence if kernel and
    /// model diverge. Returns whether they agree, or why there is no verdict.
    pub fn run(
        &mut self,
        seed: u64,
        operations: u64,
        mut note: impl FnMut(&str) -> io::Result<()>,
    ) -> io::Result<Result<bool, String>> {
        const NOW_AND_THEN: u64 = 50_000;
        let start = Instant::now();
        let mut generator = Generator::new(seed, self.works.clone());
        let mut digest = DefaultHasher::new();
        let (mut done, mut runs) = (0, 0);
        while done < operations {
            let length = generator.length();
            let attempt = self.attempt(length, false, |world, _| Some(generator.operation(world)));
            let (all, divergence) = match attempt {
                Ok(attempt) => attempt,
                Err(why) => return Ok(Err(why)),
            };
            let before = done / NOW_AND_THEN;
            done += all.len() as u64;
            runs += 1;
            all.hash(&mut digest);
            if let Some(divergence) = divergence {
                note(&format!("seed {seed}: model and kernel diverge after {done} operations"))?;
                let length = divergence.operations.len();
                let shortest = self.shorten(divergence);
                note(&format!("shortened from {length} to {}:", shortest.operations.len()))?;
                note(&shortest.to_string())?;
                return Ok(Ok(false));
            }
            if before != done / NOW_AND_THEN {
                note(&format!("seed {seed}: {done} operations"))?;
            }
        }
        let (digest, seconds) = (digest.finish(), start.elapsed().as_secs_f32());
        note(&format!(
            "seed {seed}: {done} operations in {runs} runs, digest {digest:016x}, {seconds:.1} s"
        ))?;
        Ok(Ok(true))
    }

    /// One run: its operations, and the divergence if there is one.
    fn attempt(
        &mut self,
        length: usize,
        thorough: bool,
        mut next: impl FnMut(&World<Driver>, usize) -> Option<Operation>,
    ) -> Result<(Vec<Operation>, Option<Divergence>), String> {
        let mut real = self.stage.start()?;
        let mut world = World::new(self.model.clone());
        let (mut operations, mut expected) = (Vec::new(), Vec::new());
        let mut frame = Frame::new(framed(&self.works), thorough);
        let mut divergence = None;
        for index in 0..length {
            let Some(operation) = next(&world, index) else { continue };
            let noisy = noisy(&world, &operation);
            let steps = world.clone().step(&operation);
            frame.before(&steps[0].1);
            let seen = real.run(&world, &operation, patience(noisy, &operation, &steps[0].0));
            let allowed: Vec<Outcome> = steps.iter().map(|(outcome, _)| outcome.clone()).collect();
            let step = steps.into_iter().find(|(outcome, _)| outcome.allows(&seen));
            let parted = match &step {
                Some((_, after)) => frame.after(&mut real, [&world, after], &operation, &seen),
                None => Err(seen),
            };
            operations.push(operation);
            if let Err(seen) = parted {
                let operations = operations.clone();
                divergence = Some(Divergence { operations, expected, allowed, seen });
                break;
            }
            if let Some((outcome, after)) = step {
                expected.push(outcome);
                world = after;
            }
        }
        real.end()?;
        Ok((operations, divergence))
    }

    /// Leaves out operations as long as the sequence diverges.
    fn shorten(&mut self, found: Divergence) -> Divergence {
        let end = Instant::now() + LIMIT;
        let mut best = found;
        // Asking only some threads takes a fraction of the time, if it shows the divergence.
        let thorough = !matches!(self.again(&best.operations, false), Ok(Some(_)));
        let mut chunk = best.operations.len().div_ceil(2);
        while chunk > 0 {
            let (length, mut start) = (best.operations.len(), 0);
            while start < best.operations.len() && Instant::now() < end {
                let mut candidate = best.operations.clone();
                candidate.drain(start..candidate.len().min(start + chunk));
                match self.again(&candidate, thorough) {
                    Ok(Some(found)) if found.operations.len() < best.operations.len() => {
                        best = found;
                    }
                    // A sequence that cannot be executed is not a solution either.
                    _ => start += chunk,
                }
            }
            if chunk > 1 || best.operations.len() == length {
                chunk /= 2;
            }
        }
        best
    }

    /// Executes those of these operations that are possible. If `thorough`, asks all threads after
    /// each one.
    fn again(
        &mut self,
        operations: &[Operation],
        thorough: bool,
    ) -> Result<Option<Divergence>, String> {
        let possible = |world: &World<Driver>, index: usize| {
            Some(&operations[index]).filter(|operation| world.possible(operation)).cloned()
        };
        Ok(self.attempt(operations.len(), thorough, possible)?.1)
    }
}

/// The work that frames test.
fn framed(works: &[Work]) -> Vec<Work> {
    if system::WORK_IS_QUICK { works.to_vec() } else { Vec::new() }
}

/// Whether another thread records into the same buffer. It may not be at rest yet.
fn noisy(world: &World<Driver>, operation: &Operation) -> bool {
    match operation {
        Operation::Trace { thread, map, .. } | Operation::Background { thread, map, .. } => {
            world.recording(*thread, *map).is_some_and(|r| r.thread != Some(*thread))
        }
        _ => false,
    }
}

/// The waiting before an unexpected observation counts.
fn patience(noisy: bool, operation: &Operation, expected: &Outcome) -> Patience {
    let works = matches!(operation, Operation::Background { .. });
    let tries = match expected {
        Outcome::Unchanged if works && system::WORK_IS_QUICK => 50,
        Outcome::Unchanged if works => 2,
        Outcome::Anything if works => 2,
        Outcome::Unchanged if noisy => PATIENCE,
        _ => 1,
    };
    let least = match (operation, expected) {
        (Operation::Background { count, .. }, Outcome::Grown(_)) => count + 1,
        (_, Outcome::Counted(_, to)) => *to,
        _ => 0,
    };
    Patience { tries, least }
}

/// Runs a process that lockstep has executed.
pub fn serve(equipment: &str) -> ! {
    worker::run(serde_json::from_str(equipment).expect("equipment that is known"))
}
