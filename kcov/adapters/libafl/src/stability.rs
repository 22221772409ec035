//! Noise: signals that come and go when an input is repeated.

use crate::novelty::{NewSignals, NoveltyMetadata, fire};
use crate::observer::SignalObserver;
use kcov_signal::Repeats;
use libafl::corpus::HasCurrentCorpusId;
use libafl::events::EventFirer;
use libafl::executors::HasObservers;
use libafl::monitors::stats::user_stats::TAG_CALIBRATE_STABILITY;
use libafl::monitors::stats::{AggregatorOps, UserStats, UserStatsValue};
use libafl::observers::ObserversTuple;
use libafl::stages::{Restartable, RetryCountRestartHelper, Stage};
use libafl::state::{HasCurrentTestcase, HasExecutions};
use libafl::{Error, ExecutesInput, HasMetadata, HasNamedMetadata};
use libafl_bolts::tuples::{Handle, Handled, MatchNameRef};
use std::borrow::Cow;
use std::marker::PhantomData;

/// A stage that repeats each new input, and leaves the signals that only some runs reach out of
/// novelty: no later input is interesting because of them.
///
/// Interrupts, other threads and state that earlier inputs left change the kernel's path. The stage
/// reports the share of the signals that are stable under the name that LibAFL uses, `stability`.
/// With a map of hit counts, use LibAFL's
/// [`CalibrationStage`](libafl::stages::CalibrationStage) instead.
#[derive(Debug)]
pub struct StabilityStage<I> {
    observer: Handle<SignalObserver>,
    runs: usize,
    repeats: Repeats,
    input: PhantomData<fn(&I)>,
}

impl<I> StabilityStage<I> {
    /// How often an input is run, unless [`with_runs`](Self::with_runs) says otherwise.
    pub const RUNS: usize = 3;

    /// A stage for the observer of a [`NoveltyFeedback`](crate::NoveltyFeedback) of the same name.
    #[must_use]
    pub fn new(observer: &SignalObserver) -> StabilityStage<I> {
        StabilityStage {
            observer: observer.handle(),
            runs: Self::RUNS,
            repeats: Repeats::new(),
            input: PhantomData,
        }
    }

    /// Runs each input this many times.
    #[must_use]
    pub fn with_runs(self, runs: usize) -> StabilityStage<I> {
        StabilityStage { runs, ..self }
    }
}

impl<E, EM, I, S, Z> Stage<E, EM, S, Z> for StabilityStage<I>
where
    E: HasObservers,
    E::Observers: ObserversTuple<I, S>,
    EM: EventFirer<I, S>,
    I: Clone,
    S: HasCurrentTestcase<I> + HasExecutions + HasNamedMetadata,
    Z: ExecutesInput<E, EM, I, S>,
{
    fn perform(
        &mut self,
        fuzzer: &mut Z,
        executor: &mut E,
        state: &mut S,
        manager: &mut EM,
    ) -> Result<(), Error> {
        if state.current_testcase()?.scheduled_count() > 0 {
            return Ok(());
        }
        let input = state.current_input_cloned()?;
        self.repeats.clear();
        for _ in 0..self.runs {
            fuzzer.execute_input(state, executor, manager, &input)?;
            let observers = executor.observers();
            let observer = observers.get(&self.observer).ok_or_else(|| {
                Error::illegal_argument("the executor lacks the observer of this stage")
            })?;
            observer.add_run(&mut self.repeats);
        }
        let reached = state.named_metadata_mut::<NoveltyMetadata>(self.observer.name())?;
        reached.add_noise(self.repeats.noise());
        let noise = reached.noise().len() as u64;
        let all = reached.map().len() as u64;
        if let Ok(new) = state.current_testcase_mut()?.metadata_mut::<NewSignals>() {
            let stable: Vec<_> = self.repeats.stable().collect();
            new.0.retain(|signal| stable.binary_search(signal).is_ok());
        }
        let stable = UserStatsValue::Ratio(all - noise, all);
        let stable = UserStats::with_tag(stable, AggregatorOps::Avg, TAG_CALIBRATE_STABILITY);
        fire(state, manager, Cow::Borrowed("stability"), stable)
    }
}

impl<I, S: HasNamedMetadata + HasCurrentCorpusId> Restartable<S> for StabilityStage<I> {
    fn should_restart(&mut self, state: &mut S) -> Result<bool, Error> {
        RetryCountRestartHelper::no_retry(state, "kcov-stability")
    }

    fn clear_progress(&mut self, state: &mut S) -> Result<(), Error> {
        RetryCountRestartHelper::clear_progress(state, "kcov-stability")
    }
}
