//! What the executors have in common.

use crate::CoverageObserver;
use kcov::Trace;
use kcov::mode::{TraceCmp, TracePc};
use libafl::Error;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;

/// An executor that can record comparisons instead of PCs.
pub trait CompareExecutor<I> {
    /// Runs an input in comparison mode and passes its trace to `look`, and a second one if background
    /// work is traced too. Does not call the observers.
    ///
    /// # Errors
    ///
    /// Fails if the kernel has no comparison mode, and for the reasons of
    /// [`run_target`](libafl::executors::Executor::run_target).
    fn compare(
        &mut self,
        input: &I,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error>;
}

/// Runs inputs and traces what the kernel does for them.
pub trait Run<I>: CompareExecutor<I> {
    /// Runs an input and passes its traces to `observe`.
    ///
    /// # Errors
    ///
    /// Fails if nothing can be run or traced.
    fn run(
        &mut self,
        input: &I,
        observe: &mut dyn FnMut(Trace<'_, TracePc>),
    ) -> Result<ExitKind, Error>;
}

/// An executor of LibAFL: [`InProcess`](crate::InProcess) or [`Forked`](crate::Forked).
///
/// `O` gets the trace of each execution; `OT` are further observers of LibAFL.
#[derive(Debug)]
pub struct Observed<R, O, OT = ()> {
    pub(crate) run: R,
    observers: (O, OT),
}

impl<R, O> Observed<R, O> {
    pub(crate) fn by(run: R, observer: O) -> Self {
        Observed { run, observers: (observer, ()) }
    }
}

impl<R, O, OT> Observed<R, O, OT> {
    /// The observer that gets the traces.
    #[must_use]
    pub fn observer(&self) -> &O {
        &self.observers.0
    }

    /// Replaces the further observers of LibAFL.
    pub fn with_observers<OT2>(self, observers: OT2) -> Observed<R, O, OT2> {
        Observed { run: self.run, observers: (self.observers.0, observers) }
    }
}

impl<R, O, OT, EM, I, S, Z> Executor<EM, I, S, Z> for Observed<R, O, OT>
where
    R: Run<I>,
    O: CoverageObserver,
    S: HasExecutions,
{
    fn run_target(
        &mut self,
        _: &mut Z,
        state: &mut S,
        _: &mut EM,
        input: &I,
    ) -> Result<ExitKind, Error> {
        *state.executions_mut() += 1;
        self.run.run(input, &mut |trace| self.observers.0.observe(trace))
    }
}

impl<R: CompareExecutor<I>, O, OT, I> CompareExecutor<I> for Observed<R, O, OT> {
    fn compare(
        &mut self,
        input: &I,
        look: &mut dyn FnMut(Trace<'_, TraceCmp>),
    ) -> Result<ExitKind, Error> {
        self.run.compare(input, look)
    }
}

impl<R, O, OT> HasObservers for Observed<R, O, OT> {
    type Observers = (O, OT);

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
