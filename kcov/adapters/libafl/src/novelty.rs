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
use libafl_bolts::tuples::{Handle, Handled, MatchName};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::marker::PhantomData;

/// The PCs that the corpus has reached, in the state under the name of the feedback.
#[derive(Debug, Serialize, Deserialize)]
pub struct NoveltyMetadata {
    #[serde(with = "bytes")]
    map: NoveltyMap,
}

libafl_bolts::impl_serdeany!(NoveltyMetadata);

impl NoveltyMetadata {
    /// The PCs.
    #[must_use]
    pub fn map(&self) -> &NoveltyMap {
        &self.map
    }
}

/// The PCs for which an input was added to the corpus, in the metadata of its test case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct NewPcs(pub Vec<u64>);

libafl_bolts::impl_serdeany!(NewPcs);

/// Finds an input interesting if it reaches a PC that no input in the corpus does.
///
/// Exact, unlike a map of hit counts: PCs never collide. But it ignores how often a PC occurs. Reports
/// the number of PCs as a statistic, under its own name.
#[derive(Debug)]
pub struct NoveltyFeedback {
    name: Cow<'static, str>,
    observer: Handle<SignalObserver>,
    ranges: Ranges,
    keep: bool,
}

/// How many PCs outside the ranges there is room for. Without room, a PC is new each time.
const OUTSIDE: usize = 1 << 16;

impl NoveltyFeedback {
    /// Makes a feedback for an observer. `ranges` are the kernel's text, for which there is always
    /// room: see [`kcov_signal::KernelText`]. They may be empty.
    #[must_use]
    pub fn new(observer: &SignalObserver, ranges: Ranges) -> NoveltyFeedback {
        let (name, observer) = (observer.name().clone(), observer.handle());
        NoveltyFeedback { name, observer, ranges, keep: true }
    }

    /// Replaces the observer's name, so that a fuzzer can have a second feedback for the observer:
    /// one that keeps each new way to crash, say.
    #[must_use]
    pub fn named(mut self, name: &'static str) -> NoveltyFeedback {
        self.name = Cow::Borrowed(name);
        self
    }

    /// Counts PCs, but finds no input interesting. For a comparison with a fuzzer that has no
    /// feedback.
    #[must_use]
    pub fn only_counting(mut self) -> NoveltyFeedback {
        self.keep = false;
        self
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
            map: NoveltyMap::with_fallback(self.ranges.clone(), OUTSIDE),
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
        let observer = SignalObserver::among(observers, &self.observer)?;
        let reached = state.named_metadata_mut::<NoveltyMetadata>(&self.name)?;
        if self.keep {
            return Ok(reached.map.has_new(observer.pcs()));
        }
        reached.map.merge_with(observer.pcs(), |_| ());
        Ok(false)
    }

    fn append_metadata(
        &mut self,
        state: &mut S,
        manager: &mut EM,
        observers: &OT,
        testcase: &mut Testcase<I>,
    ) -> Result<(), Error> {
        let observer = SignalObserver::among(observers, &self.observer)?;
        let reached = state.named_metadata_mut::<NoveltyMetadata>(&self.name)?;
        let mut new = NewPcs::default();
        reached.map.merge_with(observer.pcs(), |pc| new.0.push(pc));
        testcase.add_metadata(new);
        let reached = UserStatsValue::Number(reached.map.len() as u64);
        let value = UserStats::new(reached, AggregatorOps::Max);
        let event = Event::UpdateUserStats { name: self.name.clone(), value, phantom: PhantomData };
        let executions = *state.executions();
        manager.fire(state, EventWithStats::with_current_time(event, executions))
    }
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
