//! Observers that take the trace of an execution.

use kcov::Trace;
use kcov::mode::TracePc;
use kcov_signal::count_hits;
use libafl::Error;
use libafl::observers::{ExplicitTracking, HitcountsMapObserver, Observer};
use libafl_bolts::Named;
use libafl_bolts::tuples::{Handle, MatchName, MatchNameRef};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::DerefMut;

/// An observer that gets the trace of each execution from an executor of this crate.
pub trait CoverageObserver {
    /// Takes PCs of an execution, after LibAFL's `pre_exec` and before its `post_exec`. An execution
    /// has a second trace if its background work is traced too.
    fn observe(&mut self, trace: Trace<'_, TracePc>);
}

/// Counts hits in a map, for [`MaxMapFeedback`](libafl::feedbacks::MaxMapFeedback) and all else in
/// LibAFL that takes a map of edges.
///
/// [`count_hits`] hashes the PCs, so several may share a byte.
impl<M: DerefMut<Target = [u8]>> CoverageObserver for HitcountsMapObserver<M> {
    #[inline]
    fn observe(&mut self, trace: Trace<'_, TracePc>) {
        // `pre_exec` has zeroed the map.
        count_hits(trace, self);
    }
}

impl<T: CoverageObserver, const ITH: bool, const NTH: bool> CoverageObserver
    for ExplicitTracking<T, ITH, NTH>
{
    #[inline]
    fn observe(&mut self, trace: Trace<'_, TracePc>) {
        self.as_mut().observe(trace);
    }
}

/// Keeps the PCs of an execution, for [`NoveltyFeedback`](crate::NoveltyFeedback).
///
/// Copies the trace. Allocates only for a trace that is longer than all before.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignalObserver {
    name: Cow<'static, str>,
    pcs: Vec<u64>,
}

impl SignalObserver {
    /// Makes an observer with a name that is unique among the observers of the executor.
    #[must_use]
    pub fn new(name: &'static str) -> SignalObserver {
        SignalObserver { name: Cow::Borrowed(name), pcs: Vec::new() }
    }

    pub(crate) fn among<'o>(
        observers: &'o impl MatchName,
        handle: &Handle<SignalObserver>,
    ) -> Result<&'o SignalObserver, Error> {
        observers.get(handle).ok_or_else(|| {
            Error::illegal_argument(format!("the executor has no observer {}", handle.name()))
        })
    }

    /// The PCs of the last execution, as recorded.
    #[must_use]
    pub fn pcs(&self) -> &[u64] {
        &self.pcs
    }
}

impl CoverageObserver for SignalObserver {
    #[inline]
    fn observe(&mut self, trace: Trace<'_, TracePc>) {
        let before = self.pcs.len();
        self.pcs.resize(before + trace.len(), 0);
        trace.words().copy_to(&mut self.pcs[before..]);
    }
}

impl<I, S> Observer<I, S> for SignalObserver {
    fn pre_exec(&mut self, _: &mut S, _: &I) -> Result<(), Error> {
        self.pcs.clear();
        Ok(())
    }
}

impl Named for SignalObserver {
    fn name(&self) -> &Cow<'static, str> {
        &self.name
    }
}
