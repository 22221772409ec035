//! Exact novelty: which inputs reach what none did before?

use crate::observer::SignalObserver;
use kcov_signal::{NoveltyMap, Ranges};
use libafl::corpus::Testcase;
use libafl::events::{Event, EventFirer, EventWithStats};
use libafl::executors::ExitKind;
use libafl::feedbacks::{Feedback, StateInitializer};
use libafl::monitors::stats::{AggregatorOps, UserStats, UserStatsValue};
use libafl::state::HasExecutions;
use libafl::{Error, HasMetadata, HasNamedMetadata};
use libafl_bolts::Named;
use libafl_bolts::tuples::{Handle, Handled, MatchName, MatchNameRef};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

/// The signals that the corpus has reached, in the state under the name of the feedback.
#[derive(Serialize, Deserialize)]
pub struct NoveltyMetadata {
    #[serde(with = "bytes")]
    map: NoveltyMap,
}

libafl_bolts::impl_serdeany!(NoveltyMetadata);

/// Shows numbers, not the signals: there may be millions.
impl fmt::Debug for NoveltyMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoveltyMetadata").field("map", &self.map).finish()
    }
}

impl NoveltyMetadata {
    /// The signals.
    #[must_use]
    pub fn map(&self) -> &NoveltyMap {
        &self.map
    }
}

/// The signals for which an input was added to the corpus, in the metadata of its test case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewSignals(pub Vec<u64>);

libafl_bolts::impl_serdeany!(NewSignals);

/// Finds an input interesting if it reaches a signal that no input in the corpus does.
///
/// Exact, unlike a map of hit counts: signals never collide. But it ignores how often a signal
/// occurs. Reports the number of signals as a statistic, under its own name.
#[derive(Debug)]
pub struct NoveltyFeedback {
    name: Cow<'static, str>,
    observer: Handle<SignalObserver>,
    ranges: Ranges,
    outside: usize,
    keep: bool,
}

impl NoveltyFeedback {
    /// How many signals outside the ranges there is room for, unless
    /// [`with_outside`](Self::with_outside) says otherwise.
    pub const OUTSIDE: usize = 1 << 16;

    /// Makes a feedback for an observer. `ranges` are the kernel's text, for which there is always
    /// room: see [`kcov_signal::KernelText`]. They may be empty.
    #[must_use]
    pub fn new(observer: &SignalObserver, ranges: Ranges) -> NoveltyFeedback {
        let (name, observer) = (observer.name().clone(), observer.handle());
        NoveltyFeedback { name, observer, ranges, outside: Self::OUTSIDE, keep: true }
    }

    /// Replaces the observer's name, so that a fuzzer can have a second feedback for the observer:
    /// one that keeps each new way to crash, say.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> NoveltyFeedback {
        self.name = Cow::Borrowed(name);
        self
    }

    /// Makes room for this many signals outside the ranges. Without room, a signal is new each
    /// time.
    #[must_use]
    pub fn with_outside(mut self, signals: usize) -> NoveltyFeedback {
        self.outside = signals;
        self
    }

    /// Counts signals, but finds no input interesting. For a comparison with a fuzzer that has no
    /// feedback.
    #[must_use]
    pub fn only_counting(mut self) -> NoveltyFeedback {
        self.keep = false;
        self
    }

    fn observed<'o>(&self, observers: &'o impl MatchName) -> Result<&'o SignalObserver, Error> {
        observers.get(&self.observer).ok_or_else(|| {
            let observer = self.observer.name();
            Error::illegal_argument(format!("the executor has no observer {observer}"))
        })
    }
}

impl Named for NoveltyFeedback {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}

impl<S: HasNamedMetadata> StateInitializer<S> for NoveltyFeedback {
    fn init_state(&mut self, state: &mut S) -> Result<(), Error> {
        state.named_metadata_or_insert_with(&self.name, || NoveltyMetadata {
            map: NoveltyMap::with_fallback(self.ranges.clone(), self.outside),
        });
        Ok(())
    }
}

impl<EM, I, OT, S> Feedback<EM, I, OT, S> for NoveltyFeedback
where
    EM: EventFirer<I, S>,
    OT: MatchName,
    S: HasNamedMetadata + HasExecutions,
{
    fn is_interesting(
        &mut self,
        state: &mut S,
        _: &mut EM,
        _: &I,
        observers: &OT,
        _: &ExitKind,
    ) -> Result<bool, Error> {
        let observer = self.observed(observers)?;
        let reached = state.named_metadata_mut::<NoveltyMetadata>(&self.name)?;
        if self.keep {
            return Ok(observer.has_new(&reached.map));
        }
        observer.merge_into(&mut reached.map, |_| ());
        Ok(false)
    }

    fn append_metadata(
        &mut self,
        state: &mut S,
        manager: &mut EM,
        observers: &OT,
        testcase: &mut Testcase<I>,
    ) -> Result<(), Error> {
        let observer = self.observed(observers)?;
        let reached = state.named_metadata_mut::<NoveltyMetadata>(&self.name)?;
        let mut new = NewSignals::default();
        observer.merge_into(&mut reached.map, |signal| new.0.push(signal));
        testcase.add_metadata(new);
        let signals = UserStatsValue::Number(reached.map.len() as u64);
        fire(state, manager, self.name.clone(), UserStats::new(signals, AggregatorOps::Max))
    }
}

/// Reports a statistic.
pub(crate) fn fire<EM, I, S>(
    state: &mut S,
    manager: &mut EM,
    name: Cow<'static, str>,
    value: UserStats,
) -> Result<(), Error>
where
    EM: EventFirer<I, S>,
    S: HasExecutions,
{
    let event = Event::UpdateUserStats { name, value, phantom: PhantomData };
    let executions = *state.executions();
    manager.fire(state, EventWithStats::with_current_time(event, executions))
}

/// A map in a saved state, in its own format.
mod bytes {
    use kcov_signal::NoveltyMap;
    use serde::de::{Deserialize, Deserializer, Error};
    use serde::{Serialize, Serializer};

    pub(super) fn serialize<S: Serializer>(map: &NoveltyMap, to: S) -> Result<S::Ok, S::Error> {
        map.to_bytes().serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<NoveltyMap, D::Error> {
        NoveltyMap::from_bytes(&Vec::<u8>::deserialize(from)?).map_err(D::Error::custom)
    }
}
