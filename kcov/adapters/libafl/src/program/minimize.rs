//! Removal of calls that an input does not need.

use super::Program;
use crate::novelty::NewPcs;
use crate::observer::SignalObserver;
use kcov_signal::Repeats;
use libafl::corpus::{Corpus, HasCurrentCorpusId};
use libafl::executors::HasObservers;
use libafl::observers::ObserversTuple;
use libafl::schedulers::RemovableScheduler;
use libafl::stages::Stage;
use libafl::state::{HasCurrentTestcase, HasExecutions};
use libafl::{Error, ExecutesInput, HasMetadata, HasScheduler};
use libafl_bolts::tuples::{Handle, Handled};

/// A stage that removes the calls of each new program without which it still reaches the PCs
/// that made it interesting.
///
/// It first repeats the program, because interrupts, other threads and state that earlier inputs left
/// change the kernel's path. PCs that come and go do not count.
#[derive(Debug)]
pub struct MinimizeStage {
    observer: Handle<SignalObserver>,
    reached: Repeats,
}

impl MinimizeStage {
    /// How often a new program is repeated.
    const RUNS: usize = 3;

    /// A stage for the observer of a [`NoveltyFeedback`](crate::NoveltyFeedback).
    #[must_use]
    pub fn new(observer: &SignalObserver) -> MinimizeStage {
        MinimizeStage { observer: observer.handle(), reached: Repeats::new() }
    }

    /// Runs a program some times, and leaves of these PCs those that each run reached.
    fn stable<E, EM, S, Z>(
        &mut self,
        runs: usize,
        program: &Program,
        pcs: &[u64],
        (fuzzer, executor, state, manager): (&mut Z, &mut E, &mut S, &mut EM),
    ) -> Result<Vec<u64>, Error>
    where
        E: HasObservers<Observers: ObserversTuple<Program, S>>,
        Z: ExecutesInput<E, EM, Program, S>,
    {
        self.reached.clear();
        for _ in 0..runs {
            fuzzer.execute_input(state, executor, manager, program)?;
            let observers = executor.observers();
            let observer = SignalObserver::among(&*observers, &self.observer)?;
            self.reached.add_run(observer.pcs());
        }
        let reached: Vec<_> = self.reached.stable().collect();
        let is_reached = |pc: &&u64| reached.binary_search(pc).is_ok();
        Ok(pcs.iter().filter(is_reached).copied().collect())
    }
}

impl<E, EM, S, Z> Stage<E, EM, S, Z> for MinimizeStage
where
    E: HasObservers,
    E::Observers: ObserversTuple<Program, S>,
    S: HasCurrentTestcase<Program> + HasCurrentCorpusId + HasExecutions,
    Z: ExecutesInput<E, EM, Program, S> + HasScheduler<Program, S>,
    Z::Scheduler: RemovableScheduler<Program, S>,
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
        let NewPcs(all) = match state.current_testcase()?.metadata::<NewPcs>() {
            Ok(new) => new.clone(),
            Err(_) => return Ok(()),
        };
        let mut program = state.current_input_cloned()?;
        let here = (&mut *fuzzer, &mut *executor, &mut *state, &mut *manager);
        let pcs = self.stable(Self::RUNS, &program, &all, here)?;
        if pcs.is_empty() {
            return Ok(());
        }
        let before = program.calls.len();
        // The last first: nothing takes its result.
        for at in (0..before).rev() {
            let mut shorter = program.clone();
            shorter.remove(at);
            let here = (&mut *fuzzer, &mut *executor, &mut *state, &mut *manager);
            if self.stable(1, &shorter, &pcs, here)?.len() == pcs.len() {
                program = shorter;
            }
        }
        let Some(id) = state.current_corpus_id()?.filter(|_| program.calls.len() < before) else {
            return Ok(());
        };
        let mut testcase = state.current_testcase()?.clone();
        testcase.set_input(program);
        // The corpus names it anew.
        *testcase.filename_mut() = None;
        *testcase.file_path_mut() = None;
        let old = state.corpus_mut().replace(id, testcase)?;
        fuzzer.scheduler_mut().on_replace(state, id, &old)
    }
}

crate::no_restart!(MinimizeStage, "kcov-minimize");
