//! Observers that take the trace of an execution.

use crate::unforked::Unforked;
use kcov::Trace;
use kcov::mode::TracePc;
use kcov_signal::{Edges, Merged, NoveltyMap, Repeats, count_hits};
use libafl::Error;
use libafl::observers::{ExplicitTracking, HitcountsMapObserver, Observer};
use libafl_bolts::Named;
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

/// What counts as reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Signal {
    /// The PC of each basic block.
    Pc,
    /// The step from one block to the next, as in syzkaller: see [`kcov_signal::edge`]. Finds more
    /// paths through the same code than [`Pc`](Signal::Pc), and a larger corpus.
    Edge,
}

impl Signal {
    /// What its signals are called, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Signal::Pc => "pcs",
            Signal::Edge => "edges",
        }
    }
}

/// Keeps the PCs of an execution, for [`NoveltyFeedback`](crate::NoveltyFeedback).
///
/// Copies the trace. Allocates only for a trace that is longer than all before. In a child that is
/// forked later, the PCs may be 0: fork(2) is faster without them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SignalObserver {
    name: Cow<'static, str>,
    signal: Signal,
    pcs: Unforked,
}

impl SignalObserver {
    /// Makes an observer with a name that is unique among the observers of the executor.
    #[must_use]
    pub fn new(name: &'static str, signal: Signal) -> SignalObserver {
        SignalObserver { name: Cow::Borrowed(name), signal, pcs: Unforked::new() }
    }

    /// What counts as reached.
    #[must_use]
    pub fn signal(&self) -> Signal {
        self.signal
    }

    /// The PCs of the last execution, as recorded.
    #[must_use]
    pub fn pcs(&self) -> &[u64] {
        &self.pcs
    }

    /// Whether the last execution has a signal that the map lacks.
    #[must_use]
    pub fn has_new(&self, map: &NoveltyMap) -> bool {
        match self.signal {
            Signal::Pc => map.has_new(self.pcs()),
            Signal::Edge => map.has_new(Edges::new(self.pcs())),
        }
    }

    /// Adds the signals of the last execution to a map, and calls `what` with each new one.
    pub fn merge_into(&self, map: &mut NoveltyMap, what: impl FnMut(u64)) -> Merged {
        match self.signal {
            Signal::Pc => map.merge_with(self.pcs(), what),
            Signal::Edge => map.merge_with(Edges::new(self.pcs()), what),
        }
    }

    /// Adds the last execution as a run.
    pub fn add_run(&self, repeats: &mut Repeats) {
        match self.signal {
            Signal::Pc => repeats.add_run(self.pcs()),
            Signal::Edge => repeats.add_run(Edges::new(self.pcs())),
        }
    }
}

impl CoverageObserver for SignalObserver {
    #[inline]
    fn observe(&mut self, trace: Trace<'_, TracePc>) {
        trace.words().copy_to(self.pcs.grow(trace.len()));
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
