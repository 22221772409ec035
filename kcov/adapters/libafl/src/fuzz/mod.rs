//! A complete fuzzer: you write only the harness.

mod args;
mod campaign;
mod clock;
mod place;
mod saved;

use crate::program::{Calls, Generate, MinimizeStage, Program};
use crate::{ComparisonStage, FollowStage, Fork, SignalObserver, failed};
use campaign::Campaign;
use kcov::mode::TraceCmp;
use kcov::remote::linux::Remote;
use kcov::{Builder, Device, ErrorKind};
use libafl::Error;
use libafl::corpus::CorpusId;
use libafl::executors::ExitKind;
use libafl::generators::Generator;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::mutators::{
    HavocScheduledMutator, I2SRandReplace, MutationResult, Mutator, havoc_mutations,
    tokens_mutations,
};
use libafl::stages::{OptionalStage, StdMutationalStage};
use libafl::state::HasRand;
use libafl_bolts::Named;
use libafl_bolts::rands::Rand as _;
use libafl_bolts::tuples::{Merge, tuple_list};
use place::Place;
use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// The name of the observer of PCs.
const PCS: &str = "pcs";

/// How many random programs a fuzzer starts from.
const PROGRAMS: usize = 64;

/// A fuzzer with a corpus and crashes on disk, exact novelty, and comparisons if the kernel has
/// them. It prints a line each second.
///
/// Inputs run in this process, without a time limit, unless [`forked`](Self::forked) says
/// otherwise. For anything else, put the parts together yourself: they are all public.
#[derive(Clone, Debug)]
#[must_use]
pub struct Fuzz {
    builder: Builder,
    traced: Traced,
    comparisons: bool,
    feedback: bool,
    corpus: PathBuf,
    crashes: PathBuf,
    seed: u64,
    time: Duration,
    executions: u64,
    tokens: Vec<Vec<u8>>,
    mutation: Option<Mutation>,
    replay: Option<PathBuf>,
}

/// Changes an input of bytes, with a random number.
pub type Mutation = fn(&mut Vec<u8>, u64);

/// What is traced.
#[derive(Clone, Debug)]
enum Traced {
    Here,
    Children(Fork, Duration),
    Background(Remote),
    Both(Remote, Duration),
}

/// What a fuzzer has done. Its text is a line of progress.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Summary {
    /// How long it ran.
    pub time: Duration,
    /// How often it ran an input.
    pub executions: u64,
    /// The number of inputs in the corpus.
    pub inputs: usize,
    /// The number of PCs reached.
    pub pcs: usize,
    /// The number of inputs that crashed in a new way.
    pub crashes: usize,
}

impl Default for Fuzz {
    fn default() -> Fuzz {
        Fuzz::new()
    }
}

impl Fuzz {
    /// A fuzzer with the directories `corpus` and `crashes` that runs without end.
    pub fn new() -> Fuzz {
        Fuzz {
            builder: Device::builder().min_fd(200),
            traced: Traced::Here,
            comparisons: true,
            feedback: true,
            corpus: "corpus".into(),
            crashes: "crashes".into(),
            seed: 1,
            time: Duration::MAX,
            executions: u64::MAX,
            tokens: Vec::new(),
            mutation: None,
            replay: None,
        }
    }

    /// Opens devices like this. The default has descriptors from 200 on.
    pub fn builder(self, builder: Builder) -> Fuzz {
        Fuzz { builder, ..self }
    }

    /// Runs each input in a child, for `limit` at most.
    pub fn forked(self, fork: Fork, limit: Duration) -> Fuzz {
        Fuzz { traced: Traced::Children(fork, limit), ..self }
    }

    /// Traces these sources of background work instead of this thread: see
    /// [`Sources`](crate::Sources).
    pub fn background(self, sources: Remote) -> Fuzz {
        Fuzz { traced: Traced::Background(sources), ..self }
    }

    /// Traces this thread and these sources of background work. An execution ends when no record
    /// has come from them for `quiet`: zero if the harness itself waits for the work.
    pub fn with_background(self, sources: Remote, quiet: Duration) -> Fuzz {
        Fuzz { traced: Traced::Both(sources, quiet), ..self }
    }

    /// Whether to use comparisons if the kernel has them. The default is yes.
    pub fn comparisons(self, comparisons: bool) -> Fuzz {
        Fuzz { comparisons, ..self }
    }

    /// Whether inputs that reach something new are kept, and mutated in turn. The default is yes.
    /// Without, PCs are only counted.
    pub fn feedback(self, feedback: bool) -> Fuzz {
        Fuzz { feedback, ..self }
    }

    /// The directory for the corpus. The inputs in it are where the fuzzer starts.
    pub fn corpus(self, directory: impl Into<PathBuf>) -> Fuzz {
        Fuzz { corpus: directory.into(), ..self }
    }

    /// The directory for inputs that crash the harness.
    pub fn crashes(self, directory: impl Into<PathBuf>) -> Fuzz {
        Fuzz { crashes: directory.into(), ..self }
    }

    /// The seed of all random choices. The default is 1.
    pub fn seed(self, seed: u64) -> Fuzz {
        Fuzz { seed, ..self }
    }

    /// Ends after this time.
    pub fn time(self, time: Duration) -> Fuzz {
        Fuzz { time, ..self }
    }

    /// Ends after about this many executions.
    pub fn executions(self, executions: u64) -> Fuzz {
        Fuzz { executions, ..self }
    }

    /// Inserts these words into inputs of bytes and into programs' bytes, besides the constants that
    /// the kernel compares with.
    pub fn tokens(self, tokens: &[&[u8]]) -> Fuzz {
        Fuzz { tokens: tokens.iter().map(|token| token.to_vec()).collect(), ..self }
    }

    /// Changes inputs of bytes in this way, too. The number is random, and all choices of the function
    /// should come from it.
    pub fn mutation(self, mutation: Mutation) -> Fuzz {
        Fuzz { mutation: Some(mutation), ..self }
    }

    /// Runs the input in this file twice, instead of fuzzing. A program may be text.
    pub fn replay(self, file: impl Into<PathBuf>) -> Fuzz {
        Fuzz { replay: Some(file.into()), ..self }
    }

    /// Fuzzes a harness that takes bytes, from these inputs and those in the corpus directory.
    ///
    /// # Errors
    ///
    /// Fails if there is no kcov device, if no input reaches anything, or if a directory cannot be
    /// used.
    pub fn bytes(
        self,
        seeds: &[&[u8]],
        mut harness: impl FnMut(&[u8]) -> ExitKind,
    ) -> Result<Summary, Error> {
        let observer = SignalObserver::new(PCS);
        let operands = HavocScheduledMutator::new(tuple_list!(I2SRandReplace::new()));
        let operands = StdMutationalStage::new(operands);
        let comparisons = tuple_list!(ComparisonStage::new(), operands, FollowStage::new());
        let havoc = HavocScheduledMutator::new(havoc_mutations().merge(tokens_mutations()));
        let own = self.mutation.map(|own| StdMutationalStage::new(Own(own)));
        let stages = tuple_list!(
            OptionalStage::new(self.has_comparisons()?.then_some(comparisons)),
            OptionalStage::new(own.map(|own| tuple_list!(own))),
            StdMutationalStage::new(havoc)
        );
        let harness = |input: &BytesInput| harness(input.mutator_bytes());
        let place = Place::new(&self, observer, harness)?;
        let seeds = seeds.iter().map(|seed| BytesInput::new(seed.to_vec()));
        let decode = |bytes: &[u8]| Ok(BytesInput::new(bytes.to_vec()));
        Campaign::new(&self, place, decode)?.run(seeds, stages, |_| None)
    }

    /// Fuzzes programs of about `most` calls at most. It starts from random programs and from those in
    /// the corpus directory, which may be text: see [`Calls::parse`].
    ///
    /// # Errors
    ///
    /// Same as [`bytes`](Self::bytes).
    pub fn calls(self, calls: &Calls, most: usize) -> Result<Summary, Error> {
        let observer = SignalObserver::new(PCS);
        let comparisons = tuple_list!(ComparisonStage::new(), FollowStage::new());
        let stages = tuple_list!(
            MinimizeStage::new(&observer),
            OptionalStage::new(self.has_comparisons()?.then_some(comparisons)),
            StdMutationalStage::new(HavocScheduledMutator::new(tuple_list!(calls.mutation(most))))
        );
        let harness = |program: &Program| {
            calls.run(program);
            ExitKind::Ok
        };
        let place = Place::new(&self, observer, harness)?;
        let decode = |bytes: &[u8]| saved::program(calls, bytes);
        let mut campaign = Campaign::new(&self, place, decode)?;
        let mut generate = Generate::new(calls, most);
        let seeds = (0..PROGRAMS).map(|_| generate.generate(campaign.state()));
        let seeds = seeds.collect::<Result<Vec<_>, _>>()?;
        campaign.run(seeds, stages, |program| Some(calls.text(program)))
    }

    /// Whether to use comparisons, and the kernel has them.
    fn has_comparisons(&self) -> Result<bool, Error> {
        if !self.comparisons {
            return Ok(false);
        }
        let mut device = self.builder.clone().open().map_err(failed)?;
        match device.child_buffer(TraceCmp) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == ErrorKind::ModeNotBuiltIn => Ok(false),
            Err(error) => Err(failed(error)),
        }
    }
}

/// The harness's own mutation.
struct Own(Mutation);

impl Named for Own {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("Own")
    }
}

impl<S: HasRand> Mutator<BytesInput, S> for Own {
    fn mutate(&mut self, state: &mut S, input: &mut BytesInput) -> Result<MutationResult, Error> {
        let random = state.rand_mut().next();
        (self.0)(input.as_mut(), random);
        Ok(MutationResult::Mutated)
    }

    fn post_exec(&mut self, _: &mut S, _: Option<CorpusId>) -> Result<(), Error> {
        Ok(())
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.time.as_secs_f64();
        let rate = self.executions as f64 / seconds.max(f64::EPSILON);
        let Summary { executions, inputs, pcs, crashes, .. } = self;
        write!(f, "{seconds:.0} s: {executions} executions, {rate:.0}/s, {inputs} inputs, ")?;
        write!(f, "{pcs} pcs, {crashes} crashes")
    }
}
