//! Signals that come and go are noise.

mod support;

use kcov::fake::Kernel;
use kcov_libafl::{
    InProcess, NewSignals, NoveltyFeedback, NoveltyMetadata, Signal, SignalObserver, StabilityStage,
};
use kcov_signal::Ranges;
use libafl::corpus::{Corpus, CorpusId};
use libafl::executors::ExitKind;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::state::{HasCorpus, HasExecutions};
use libafl::{HasMetadata, HasNamedMetadata};
use libafl_bolts::tuples::tuple_list;
use std::cell::Cell;
use support::{Fuzzer, bytes};

/// Each byte is a PC, and so is the number of the execution, if the first byte is 0.
fn harness(kernel: &Kernel) -> impl FnMut(&BytesInput) -> ExitKind + use<> {
    let (kernel, executions) = (kernel.clone(), Cell::new(0x1000));
    move |input| {
        executions.set(executions.get() + 1);
        kernel.call(|trace| {
            input.mutator_bytes().iter().for_each(|pc| trace.pc((*pc).into()));
            if input.mutator_bytes()[0] == 0 {
                trace.pc(executions.get());
            }
        });
        ExitKind::Ok
    }
}

#[test]
fn noise_is_not_new_and_not_stable() {
    let kernel = Kernel::linux();
    let observer = SignalObserver::new("pcs", Signal::Pc);
    let feedback = NoveltyFeedback::new(&observer, Ranges::default());
    let mut stages = tuple_list!(StabilityStage::new(&observer).with_runs(4));
    let device = kernel.builder().open().unwrap();
    let mut executor = InProcess::new(device, observer, harness(&kernel)).unwrap();
    let mut fuzzer = Fuzzer::new(feedback);
    // The first execution, with 0x1001.
    assert!(fuzzer.is_new(&mut executor, bytes(&[0, 5])));
    fuzzer.fuzz(&mut executor, &mut stages, 2, 1);
    assert_eq!(*fuzzer.state.executions(), 5);
    {
        let reached = fuzzer.state.named_metadata::<NoveltyMetadata>("pcs").unwrap();
        assert!(reached.noise().iter().copied().eq(0x1002..=0x1005));
        assert!(reached.noise().iter().all(|pc| reached.map().contains(*pc)));
        let entry = fuzzer.state.corpus().get(CorpusId(0)).unwrap().borrow();
        assert_eq!(entry.metadata::<NewSignals>().unwrap().0, [0, 5], "0x1001 was noise");
    }
    // Only the first time.
    fuzzer.fuzz(&mut executor, &mut stages, 2, 1);
    assert_eq!(*fuzzer.state.executions(), 5);
    assert!(!fuzzer.is_new(&mut executor, bytes(&[5])));
}

#[test]
fn noise_without_room_is_not_counted() {
    let kernel = Kernel::linux();
    let observer = SignalObserver::new("pcs", Signal::Pc);
    let feedback = NoveltyFeedback::new(&observer, Ranges::default()).with_outside(0);
    let mut stages = tuple_list!(StabilityStage::new(&observer));
    let device = kernel.builder().open().unwrap();
    let mut executor = InProcess::new(device, observer, harness(&kernel)).unwrap();
    let mut fuzzer = Fuzzer::new(feedback);
    assert!(fuzzer.is_new(&mut executor, bytes(&[0])));
    fuzzer.fuzz(&mut executor, &mut stages, 2, 1);
    let reached = fuzzer.state.named_metadata::<NoveltyMetadata>("pcs").unwrap();
    assert_eq!((reached.noise().len(), reached.map().len()), (0, 0));
    assert!(executor.observer().pcs().len() == 2);
}
