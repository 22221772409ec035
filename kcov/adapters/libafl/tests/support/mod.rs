//! A fuzzer of LibAFL on the fake kernel.
#![allow(dead_code, reason = "each test program uses a part")]

use kcov_libafl::NoveltyFeedback;
use libafl::corpus::{Corpus, InMemoryCorpus};
use libafl::events::SimpleEventManager;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::feedbacks::CrashFeedback;
use libafl::fuzzer::{NopInputFilter, StdFuzzer};
use libafl::inputs::{BytesInput, BytesInputConverter, Input};
use libafl::monitors::NopMonitor;
use libafl::observers::ObserversTuple;
use libafl::schedulers::QueueScheduler;
use libafl::stages::StagesTuple;
use libafl::state::{HasCorpus, HasExecutions, NopState, StdState};
use libafl::{Error, Evaluator, ExecuteInputResult, Fuzzer as _};
use libafl_bolts::rands::StdRand;
use serde::Serialize;
use serde::de::DeserializeOwned;

pub type State<I> = StdState<InMemoryCorpus<I>, I, StdRand, InMemoryCorpus<I>>;
pub type Manager<I> = SimpleEventManager<I, NopMonitor, State<I>>;
pub type Target =
    StdFuzzer<QueueScheduler, NoveltyFeedback, BytesInputConverter, NopInputFilter, CrashFeedback>;

pub struct Fuzzer<I> {
    pub state: State<I>,
    pub target: Target,
    pub manager: Manager<I>,
}

impl<I: Input> Fuzzer<I> {
    pub fn new(mut feedback: NoveltyFeedback) -> Fuzzer<I> {
        let mut objective = CrashFeedback::new();
        let (corpus, crashes) = (InMemoryCorpus::new(), InMemoryCorpus::new());
        let rand = StdRand::with_seed(1);
        let state = StdState::new(rand, corpus, crashes, &mut feedback, &mut objective).unwrap();
        let target = StdFuzzer::new(QueueScheduler::new(), feedback, objective);
        Fuzzer { state, target, manager: SimpleEventManager::new(NopMonitor::new()) }
    }

    /// Runs an input. Returns whether it went to the corpus.
    pub fn is_new<E>(&mut self, executor: &mut E, input: I) -> bool
    where
        E: Executor<Manager<I>, I, State<I>, Target> + HasObservers,
        E::Observers: ObserversTuple<I, State<I>> + Serialize + DeserializeOwned,
    {
        let Fuzzer { state, target, manager } = self;
        let (result, _) = target.evaluate_input(state, executor, manager, &input).unwrap();
        result == ExecuteInputResult::Corpus
    }

    /// Runs the stages on each entry of the corpus in turn, until it has `entries` or this was done
    /// `rounds` times.
    pub fn fuzz<E, ST>(&mut self, executor: &mut E, stages: &mut ST, entries: usize, rounds: usize)
    where
        E: Executor<Manager<I>, I, State<I>, Target> + HasObservers,
        E::Observers: ObserversTuple<I, State<I>> + Serialize + DeserializeOwned,
        ST: StagesTuple<E, Manager<I>, State<I>, Target>,
    {
        let Fuzzer { state, target, manager } = self;
        for _ in 0..rounds {
            if state.corpus().count() >= entries {
                break;
            }
            target.fuzz_one(stages, executor, state, manager).unwrap();
        }
    }
}

pub fn bytes(bytes: &[u8]) -> BytesInput {
    BytesInput::new(bytes.to_vec())
}

/// Runs an input as LibAFL does.
pub fn execute<E>(executor: &mut E, input: &[u8]) -> Result<ExitKind, Error>
where
    E: Executor<(), BytesInput, NopState<BytesInput>, ()> + HasObservers,
    E::Observers: ObserversTuple<BytesInput, NopState<BytesInput>>,
{
    let (mut state, input) = (NopState::new(), bytes(input));
    executor.observers_mut().pre_exec_all(&mut state, &input)?;
    let kind = executor.run_target(&mut (), &mut state, &mut (), &input)?;
    executor.observers_mut().post_exec_all(&mut state, &input, &kind)?;
    assert_eq!(*state.executions(), 1);
    Ok(kind)
}
