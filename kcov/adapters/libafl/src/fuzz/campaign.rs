//! The loop of a fuzzer.

use super::link::Saved;
use super::{Fuzz, Place, Summary};
use crate::compare::Search;
use crate::{NewSignals, NoveltyFeedback, NoveltyMetadata, Signal};
use kcov_signal::{KernelText, Ranges};
use libafl::corpus::{
    Corpus, CorpusId, EnableDisableCorpus, HasCurrentCorpusId, InMemoryOnDiskCorpus, OnDiskCorpus,
};
use libafl::events::SimpleEventManager;
use libafl::executors::{Executor, ExitKind};
use libafl::feedbacks::{
    CrashFeedback, EagerAndFeedback, EagerOrFeedback, NotFeedback, TimeoutFeedback,
};
use libafl::fuzzer::{NopInputFilter, StdFuzzer};
use libafl::inputs::{BytesInputConverter, Input};
use libafl::monitors::NopMonitor;
use libafl::schedulers::QueueScheduler;
use libafl::stages::StagesTuple;
use libafl::state::{HasCorpus, HasExecutions, HasRand, HasSolutions, StdState};
use libafl::{Error, Evaluator, Fuzzer, HasMetadata, HasNamedMetadata};
use libafl_bolts::rands::{Rand, StdRand};
use std::path::Path;
use std::time::Duration;
use std::{fs, mem};

/// Room for edges, which are outside the kernel's text.
const EDGES: usize = 1 << 20;

type State<I> = StdState<InMemoryOnDiskCorpus<I>, I, StdRand, OnDiskCorpus<I>>;
type Manager<I> = SimpleEventManager<I, NopMonitor, State<I>>;
type Failed = EagerOrFeedback<CrashFeedback, TimeoutFeedback>;
type Engine = StdFuzzer<
    QueueScheduler,
    EagerAndFeedback<NotFeedback<Failed>, NoveltyFeedback>,
    BytesInputConverter,
    NopInputFilter,
    EagerAndFeedback<Failed, NoveltyFeedback>,
>;

pub(super) struct Campaign<'f, I, F> {
    fuzz: &'f Fuzz,
    place: Place<F>,
    state: State<I>,
    engine: Engine,
    manager: Manager<I>,
    /// The inputs of the corpus directory and of the host, in random order.
    saved: Vec<I>,
    /// The host's inputs that only other guests mutate.
    resting: Vec<I>,
    /// How many inputs and crashes the host has.
    sent: (usize, usize),
}

fn failed() -> Failed {
    EagerOrFeedback::new(CrashFeedback::new(), TimeoutFeedback::new())
}

/// The recorded addresses of the kernel's text, if the system tells them.
fn text() -> Ranges {
    KernelText::read().ok().and_then(|text| text.ranges().ok()).unwrap_or_default()
}

impl<'f, I, F> Campaign<'f, I, F>
where
    I: Input + Saved + Search,
    F: FnMut(&I) -> ExitKind,
{
    pub(super) fn new(fuzz: &'f Fuzz, place: Place<F>) -> Result<Self, Error> {
        let novelty = || {
            let feedback = NoveltyFeedback::new(place.observer(), text());
            match fuzz.signal {
                Signal::Pc => feedback,
                Signal::Edge => feedback.with_outside(EDGES),
            }
        };
        let wanted = if fuzz.feedback { novelty() } else { novelty().only_counting() };
        let mut feedback = EagerAndFeedback::new(NotFeedback::new(failed()), wanted);
        let mut objective = EagerAndFeedback::new(failed(), novelty().named("crashes"));
        // Only inputs: no metadata and no locks, because no other process uses the directory.
        let inputs = InMemoryOnDiskCorpus::with_meta_format_and_prefix;
        let corpus = inputs(&fuzz.corpus, None, None, false)?;
        let crashes = OnDiskCorpus::with_meta_format_and_prefix(&fuzz.crashes, None, None, false)?;
        let seed = place.host.limits().map_or(fuzz.seed, |(seed, _)| seed);
        let rand = StdRand::with_seed(seed);
        let mut state = StdState::new(rand, corpus, crashes, &mut feedback, &mut objective)?;
        let mut saved = files(&fuzz.corpus)?;
        saved.extend(place.host.corpus()?);
        // Each guest has another order, so a deadly input does not hide the others from all of them.
        shuffle(state.rand_mut(), &mut saved);
        let resting = place.host.resting()?;
        let engine = StdFuzzer::new(QueueScheduler::new(), feedback, objective);
        let manager = SimpleEventManager::new(NopMonitor::new());
        Ok(Campaign { fuzz, place, state, engine, manager, saved, resting, sent: (0, 0) })
    }

    pub(super) fn state(&mut self) -> &mut State<I> {
        &mut self.state
    }

    /// Whether there are inputs to go on from.
    pub(super) fn goes_on(&self) -> bool {
        self.fuzz.feedback && !self.saved.is_empty()
    }

    /// Runs the seeds and the saved inputs, then fuzzes to the end. `text` shows an input to people.
    pub(super) fn run<ST>(
        mut self,
        seeds: impl IntoIterator<Item = I>,
        mut stages: ST,
        text: impl FnOnce(&I) -> Option<String>,
    ) -> Result<Summary, Error>
    where
        ST: StagesTuple<Place<F>, Manager<I>, State<I>, Engine>,
    {
        if let Some(inputs) = self.place.host.replay()? {
            if let [input] = &inputs[..] {
                self.place.host.about(input, text(input))?;
            }
            return self.replay(&inputs);
        }
        let time = self.place.host.limits().map_or(Duration::MAX, |(_, time)| time);
        self.place.clock.end_after(time.min(self.fuzz.time));
        let result = self.fuzz(seeds, &mut stages);
        let summary = self.report()?;
        self.report_all()?;
        match result {
            Ok(()) | Err(Error::ShuttingDown) => {
                println!("{summary}");
                Ok(summary)
            }
            Err(error) => Err(error),
        }
    }

    /// Ends with [`Error::ShuttingDown`] when the time is over.
    fn fuzz<ST>(&mut self, seeds: impl IntoIterator<Item = I>, stages: &mut ST) -> Result<(), Error>
    where
        ST: StagesTuple<Place<F>, Manager<I>, State<I>, Engine>,
    {
        for input in mem::take(&mut self.resting) {
            let Campaign { place, state, engine, manager, .. } = self;
            engine.evaluate_input(state, place, manager, &input)?;
        }
        let resting = self.state.corpus().count();
        self.sent.0 = resting;
        let saved = mem::take(&mut self.saved);
        for input in seeds.into_iter().chain(saved) {
            let Campaign { fuzz, place, state, engine, manager, .. } = self;
            if fuzz.feedback {
                engine.evaluate_input(state, place, manager, &input)?;
            } else {
                engine.add_input(state, place, manager, input)?;
            }
            self.report()?;
        }
        if self.state.corpus().count() == 0 {
            return Err(Error::illegal_state("no input to start from reaches code in the kernel"));
        }
        for id in (0..resting).map(CorpusId) {
            // At least one input must be left to mutate.
            if self.state.corpus().count() > 1 {
                self.state.corpus_mut().disable(id)?;
            }
        }
        let mut processed = self.state.corpus().count_all();
        loop {
            let Summary { executions, inputs, .. } = self.report()?;
            if executions >= self.fuzz.executions {
                return Ok(());
            }
            let Campaign { place, state, engine, manager, .. } = self;
            // New inputs first: the guest may crash before their turn.
            let new = (processed < inputs).then_some(CorpusId(processed));
            if let Some(id) = new {
                state.set_corpus_id(id)?;
            }
            engine.fuzz_one(stages, place, state, manager)?;
            if let Some(id) = new {
                place.processed(id, &state.corpus().cloned_input_for_id(id)?)?;
                processed += 1;
            }
        }
    }

    /// Runs inputs once each.
    fn replay(mut self, inputs: &[I]) -> Result<Summary, Error> {
        for input in inputs {
            let Campaign { place, state, engine, manager, .. } = &mut self;
            place.run_target(engine, state, manager, input)?;
        }
        self.summary()
    }

    /// Sends the host what is new.
    fn report(&mut self) -> Result<Summary, Error> {
        let summary = self.summary()?;
        let host = &self.place.host;
        let (inputs, crashes) = &mut self.sent;
        // Nothing is removed from either, so they are numbered.
        for id in (*inputs..summary.inputs).map(CorpusId) {
            host.found(&self.state.corpus().cloned_input_for_id(id)?)?;
            if self.fuzz.signal == Signal::Pc {
                let testcase = self.state.corpus().get(id)?.borrow();
                host.reached(&testcase.metadata::<NewSignals>()?.0)?;
            }
        }
        for id in (*crashes..summary.crashes).map(CorpusId) {
            host.crashed(&self.state.solutions().cloned_input_for_id(id)?)?;
        }
        (*inputs, *crashes) = (summary.inputs, summary.crashes);
        self.place.clock.summary = summary.clone();
        Ok(summary)
    }

    /// Sends the host everything that was reached, including what discarded inputs reached.
    fn report_all(&self) -> Result<(), Error> {
        if self.fuzz.signal == Signal::Pc {
            let name = self.fuzz.signal.name();
            let reached = self.state.named_metadata::<NoveltyMetadata>(name)?;
            self.place.host.reached(&reached.map().iter().collect::<Vec<u64>>())?;
        }
        Ok(())
    }

    fn summary(&self) -> Result<Summary, Error> {
        let signal = self.fuzz.signal;
        let reached = self.state.named_metadata::<NoveltyMetadata>(signal.name())?;
        Ok(Summary {
            time: self.place.clock.elapsed(),
            executions: *self.state.executions(),
            inputs: self.state.corpus().count_all(),
            signal,
            signals: reached.map().len(),
            crashes: self.state.solutions().count(),
        })
    }
}

fn shuffle<T>(rand: &mut impl Rand, items: &mut [T]) {
    for at in (1..items.len()).rev() {
        items.swap(at, rand.between(0, at));
    }
}

/// The inputs in a directory, except for hidden files.
fn files<I: Input>(directory: &Path) -> Result<Vec<I>, Error> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().map_or(&[][..], |name| name.as_encoded_bytes());
        if path.is_file() && !name.starts_with(b".") {
            files.push(path);
        }
    }
    // The same order in each run.
    files.sort();
    files.iter().map(I::from_file).collect()
}
