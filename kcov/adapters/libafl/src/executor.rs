//! The adapter: an executor that runs an input in a kcov session and counts its PCs in an
//! observer's map. LibAFL does the rest.

use kcov::mode::TracePc;
use kcov::{Session, Trace};
use kcov_signal::count_hits;
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::inputs::HasTargetBytes;
use libafl::observers::{HitcountsMapObserver, StdMapObserver};
use libafl::state::HasExecutions;
use libafl_bolts::tuples::RefIndexable;
use libafl_bolts::{Error, ToSlice};
use std::ops::DerefMut;

/// LibAFL turns the counts into AFL's classes.
pub type Observer = HitcountsMapObserver<StdMapObserver<'static, u8, false>>;

/// The name of the observer.
pub const NAME: &str = "kcov";

/// Makes an observer with a map of this many bytes.
pub fn observer(bytes: usize) -> Observer {
    HitcountsMapObserver::new(StdMapObserver::owned(NAME, vec![0; bytes]))
}

/// Runs an input and has its trace.
pub trait Target {
    /// Runs the input and passes on its trace, in place.
    fn run(&mut self, input: &[u8], look: impl FnOnce(Trace<'_, TracePc>));
}

/// System calls of this thread, traced by the kernel.
pub struct Kernel<F> {
    pub session: Session<TracePc>,
    pub calls: F,
}

impl<F: FnMut(&[u8])> Target for Kernel<F> {
    fn run(&mut self, input: &[u8], look: impl FnOnce(Trace<'_, TracePc>)) {
        // Between two inputs the session records LibAFL's own system calls.
        self.session.reset();
        (self.calls)(input);
        look(self.session.trace());
    }
}

/// Runs inputs in a [`Target`].
pub struct KcovExecutor<T> {
    target: T,
    observers: (Observer, ()),
}

impl<T> KcovExecutor<T> {
    pub fn new(target: T, observer: Observer) -> Self {
        KcovExecutor { target, observers: (observer, ()) }
    }
}

impl<T, EM, I, S, Z> Executor<EM, I, S, Z> for KcovExecutor<T>
where
    T: Target,
    I: HasTargetBytes,
    S: HasExecutions,
{
    fn run_target(
        &mut self,
        _: &mut Z,
        state: &mut S,
        _: &mut EM,
        input: &I,
    ) -> Result<ExitKind, Error> {
        // Counting executions is the executor's job.
        *state.executions_mut() += 1;
        let map = self.observers.0.deref_mut();
        // LibAFL zeroes the map before each execution.
        self.target.run(input.target_bytes().to_slice(), |trace| count_hits(trace, map));
        Ok(ExitKind::Ok)
    }
}

impl<T> HasObservers for KcovExecutor<T> {
    type Observers = (Observer, ());

    fn observers(&self) -> RefIndexable<&Self::Observers, Self::Observers> {
        RefIndexable::from(&self.observers)
    }

    fn observers_mut(&mut self) -> RefIndexable<&mut Self::Observers, Self::Observers> {
        RefIndexable::from(&mut self.observers)
    }
}
