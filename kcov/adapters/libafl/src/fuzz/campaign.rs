//! The loop of a fuzzer.

use super::saved::Saved;
use super::{Fuzz, PCS, Place, Summary};
use crate::compare::Search;
use crate::{NewPcs, NoveltyFeedback, NoveltyMetadata};
use kcov_signal::{KernelText, Ranges};
use kcov_vm_guest::fuzz::{Link, name};
use libafl::corpus::{
    Corpus, CorpusId, EnableDisableCorpus, HasCurrentCorpusId, InMemoryOnDiskCorpus, OnDiskCorpus,
};
use libafl::events::SimpleEventManager;
use libafl::executors::Executor;
use libafl::feedbacks::{
    CrashFeedback, EagerAndFeedback, EagerOrFeedback, NotFeedback, TimeoutFeedback,
};
use libafl::fuzzer::{NopInputFilter, StdFuzzer};
use libafl::inputs::{BytesInputConverter, Input};
use libafl::monitors::NopMonitor;
use libafl::mutators::Tokens;
use libafl::schedulers::QueueScheduler;
use libafl::stages::StagesTuple;
use libafl::state::{HasCorpus, HasExecutions, HasRand, HasSolutions, StdState};
use libafl::{Error, Evaluator, Fuzzer, HasMetadata, HasNamedMetadata};
use libafl_bolts::rands::{Rand, StdRand};
use std::borrow::Cow;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, mem};

type State<I> = StdState<InMemoryOnDiskCorpus<I>, I, StdRand, OnDiskCorpus<I>>;
type Manager<I> = SimpleEventManager<I, NopMonitor, State<I>>;
type Failed = EagerOrFeedback<CrashFeedback, TimeoutFeedback>;
type Engine = StdFuzzer<
    QueueScheduler,
    EagerAndFeedback<NotFeedback<Failed>, NoveltyFeedback>,
    BytesInputConverter,
    NopInputFilter,
    EagerAndFeedback<CrashFeedback, NoveltyFeedback>,
>;

pub(super) struct Campaign<'f, I> {
    fuzz: &'f Fuzz,
    place: Place<'f, I>,
    state: State<I>,
    engine: Engine,
    manager: Manager<I>,
    /// The inputs of the corpus directory and of the host, in random order.
    saved: Vec<I>,
    /// The host's inputs that only other guests mutate.
    resting: Vec<I>,
    /// The inputs to run instead of fuzzing.
    replayed: Option<Vec<I>>,
    /// How many inputs and crashes the host has.
    sent: (usize, usize),
}

/// The recorded addresses of the kernel's text, if the system tells them.
fn text() -> Ranges {
    KernelText::read().ok().and_then(|text| text.ranges().ok()).unwrap_or_default()
}

impl<'f, I: Input + Saved + Search> Campaign<'f, I> {
    /// `decode` reads an input from its file.
    pub(super) fn new(
        fuzz: &'f Fuzz,
        place: Place<'f, I>,
        decode: impl Fn(&[u8]) -> Result<I, Error>,
    ) -> Result<Self, Error> {
        let novelty = || NoveltyFeedback::new(place.observer(), text());
        let wanted = if fuzz.feedback { novelty() } else { novelty().only_counting() };
        let failed = EagerOrFeedback::new(CrashFeedback::new(), TimeoutFeedback::new());
        let mut feedback = EagerAndFeedback::new(NotFeedback::new(failed), wanted);
        // A time limit passes by itself on a busy machine, so what hangs is neither kept nor reported.
        let crashed = CrashFeedback::new();
        let mut objective = EagerAndFeedback::new(crashed, novelty().named("crashes"));
        // Only inputs: no metadata and no locks, because no other process uses the directory.
        let inputs = InMemoryOnDiskCorpus::with_meta_format_and_prefix;
        let corpus = inputs(&fuzz.corpus, None, None, false)?;
        let crashes = OnDiskCorpus::with_meta_format_and_prefix(&fuzz.crashes, None, None, false)?;
        let seed = place.host.as_ref().map_or(fuzz.seed, Link::seed);
        let rand = StdRand::with_seed(seed);
        let mut state = StdState::new(rand, corpus, crashes, &mut feedback, &mut objective)?;
        if !fuzz.tokens.is_empty() {
            state.add_metadata(Tokens::from(fuzz.tokens.clone()));
        }
        let file = |path: &PathBuf| {
            let input = decode(&fs::read(path)?);
            input.map_err(|error| crate::failed(format_args!("{}: {error}", path.display())))
        };
        let mut saved = files(&fuzz.corpus)?.iter().map(file).collect::<Result<Vec<_>, _>>()?;
        let mut replayed = match &fuzz.replay {
            Some(path) => Some(vec![file(path)?]),
            None => None,
        };
        let mut resting = Vec::new();
        if let Some(host) = &place.host {
            let decoded = |all: &[Vec<u8>]| -> Vec<I> {
                all.iter().filter_map(|bytes| decode(bytes).ok()).collect()
            };
            for bytes in host.corpus()? {
                let Ok(input) = decode(&bytes) else { continue };
                let own = input.to_bytes()?;
                // Text, for example. The host removes an input that kills a guest by its bytes.
                if *own != *bytes {
                    host.replaced(name(&bytes), &own)?;
                }
                drop(own);
                saved.push(input);
            }
            resting.extend(decoded(&host.resting()?));
            replayed = host.replay()?.map(|inputs| decoded(&inputs)).or(replayed);
        }
        // Each guest has another order, so a deadly input does not hide the others from all of them.
        saved.sort_by_cached_key(|_| state.rand_mut().next());
        let engine = StdFuzzer::new(QueueScheduler::new(), feedback, objective);
        let manager = SimpleEventManager::new(NopMonitor::new());
        let sent = (0, 0);
        Ok(Campaign { fuzz, place, state, engine, manager, saved, resting, replayed, sent })
    }

    pub(super) fn state(&mut self) -> &mut State<I> {
        &mut self.state
    }

    /// Runs the seeds and the saved inputs, then fuzzes to the end. `text` shows an input to people.
    pub(super) fn run<ST>(
        mut self,
        seeds: impl IntoIterator<Item = I>,
        mut stages: ST,
        text: impl FnOnce(&I) -> Option<String>,
    ) -> Result<Summary, Error>
    where
        ST: StagesTuple<Place<'f, I>, Manager<I>, State<I>, Engine>,
    {
        if let Some(inputs) = self.replayed.take() {
            return self.replay(inputs, text);
        }
        let host = self.place.host.as_ref();
        let time = host.map_or(Duration::MAX, Link::time);
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
        ST: StagesTuple<Place<'f, I>, Manager<I>, State<I>, Engine>,
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

    /// Runs each input twice, because the first run may leave a state that crashes the kernel in the
    /// second. If there is only one input, tells the host about it first.
    fn replay(
        mut self,
        inputs: Vec<I>,
        text: impl FnOnce(&I) -> Option<String>,
    ) -> Result<Summary, Error> {
        if let (Some(host), [input]) = (&self.place.host, &inputs[..]) {
            let smaller = input.smaller();
            let smaller = smaller.iter().map(|input| input.to_bytes().map(Cow::into_owned));
            host.about(text(input), smaller.collect::<Result<Vec<_>, _>>()?)?;
        }
        for input in inputs.iter().flat_map(|input| [input, input]) {
            let Campaign { place, state, engine, manager, .. } = &mut self;
            place.run_target(engine, state, manager, input)?;
        }
        self.summary()
    }

    /// Sends the host what is new.
    fn report(&mut self) -> Result<Summary, Error> {
        let summary = self.summary()?;
        if let Some(host) = &self.place.host {
            let (inputs, crashes) = &mut self.sent;
            // Nothing is removed from either, so they are numbered.
            for id in (*inputs..summary.inputs).map(CorpusId) {
                host.found(&self.state.corpus().cloned_input_for_id(id)?.to_bytes()?)?;
                let testcase = self.state.corpus().get(id)?.borrow();
                host.reached(&testcase.metadata::<NewPcs>()?.0)?;
            }
            for id in (*crashes..summary.crashes).map(CorpusId) {
                host.crashed(&self.state.solutions().cloned_input_for_id(id)?.to_bytes()?)?;
            }
            (*inputs, *crashes) = (summary.inputs, summary.crashes);
        }
        self.place.clock.summary = summary.clone();
        Ok(summary)
    }

    /// Sends the host everything that was reached, including what discarded inputs reached.
    fn report_all(&self) -> Result<(), Error> {
        if let Some(host) = &self.place.host {
            let reached = self.state.named_metadata::<NoveltyMetadata>(PCS)?;
            host.reached(&reached.map().iter().collect::<Vec<u64>>())?;
        }
        Ok(())
    }

    fn summary(&self) -> Result<Summary, Error> {
        let reached = self.state.named_metadata::<NoveltyMetadata>(PCS)?;
        Ok(Summary {
            time: self.place.clock.elapsed(),
            executions: *self.state.executions(),
            inputs: self.state.corpus().count_all(),
            pcs: reached.map().len(),
            crashes: self.state.solutions().count(),
        })
    }
}

/// The files of a directory without the hidden ones, sorted, so that each run has the same order.
fn files(directory: &Path) -> Result<Vec<PathBuf>, Error> {
    let paths = fs::read_dir(directory)?.map(|entry| entry.map(|entry| entry.path()));
    let mut files = paths.collect::<Result<Vec<_>, _>>()?;
    let is_hidden = |name: &OsStr| name.as_encoded_bytes().starts_with(b".");
    files.retain(|path| path.is_file() && !path.file_name().is_some_and(is_hidden));
    files.sort();
    Ok(files)
}
