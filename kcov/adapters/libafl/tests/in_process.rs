//! Executions in this process, and what is new about them, on the fake kernel.

mod support;

use kcov::fake::Kernel;
use kcov::{BufferSize, Device, ErrorKind, Operation};
use kcov_libafl::{
    CompareExecutor, InProcess, NewPcs, NoveltyFeedback, NoveltyMetadata, SignalObserver,
};
use kcov_signal::{Ranges, count_hits};
use libafl::corpus::{Corpus, CorpusId};
use libafl::executors::{Executor, ExitKind};
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::observers::{HitcountsMapObserver, OwnedMapObserver};
use libafl::state::{HasCorpus, HasSolutions, NopState};
use libafl::{HasMetadata, HasNamedMetadata};
use support::{Fuzzer, bytes, execute};

fn device(kernel: &Kernel) -> Device {
    kernel.builder().size(BufferSize::words(512)).open().expect("it opens")
}

/// Each byte of the input is a PC. 0xff crashes.
fn harness(kernel: &Kernel) -> impl FnMut(&BytesInput) -> ExitKind + use<> {
    let kernel = kernel.clone();
    move |input| {
        let bytes = input.mutator_bytes();
        kernel.call(|trace| bytes.iter().for_each(|pc| trace.pc((*pc).into())));
        if bytes == [0xff] { ExitKind::Crash } else { ExitKind::Ok }
    }
}

fn pcs(kernel: &Kernel) -> InProcess<impl FnMut(&BytesInput) -> ExitKind + use<>, SignalObserver> {
    let observer = SignalObserver::new("pcs");
    InProcess::new(device(kernel), observer, harness(kernel)).expect("it enables")
}

#[test]
fn a_trace_is_of_one_execution() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let mut executor = pcs(&kernel);
        assert_eq!(execute(&mut executor, &[1, 2, 1]).unwrap(), ExitKind::Ok);
        assert_eq!(executor.observer().pcs(), [1, 2, 1]);
        // The fuzzer's own calls are no part of the next one.
        kernel.call(|trace| trace.pc(9));
        assert_eq!(execute(&mut executor, &[3]).unwrap(), ExitKind::Ok);
        assert_eq!(executor.observer().pcs(), [3]);
        assert_eq!(execute(&mut executor, &[0xff]).unwrap(), ExitKind::Crash);
        assert_eq!(executor.observer().pcs(), [0xff]);
    }
}

#[test]
fn a_full_buffer_gives_what_it_holds_and_a_corrupt_count_nothing() {
    let kernel = Kernel::linux();
    let mut executor = pcs(&kernel);
    execute(&mut executor, &[7; 600]).unwrap();
    assert_eq!(executor.observer().pcs(), [7; 511]);

    let (observer, scribbler) = (SignalObserver::new("pcs"), kernel.clone());
    drop(executor);
    let corrupt = move |input: &BytesInput| {
        scribbler.call(|trace| trace.pc(1));
        if input.mutator_bytes() == [0] {
            scribbler.store_counts(u64::MAX / 2);
        }
        ExitKind::Ok
    };
    let mut executor = InProcess::new(device(&kernel), observer, corrupt).unwrap();
    execute(&mut executor, &[0]).unwrap();
    assert!(executor.observer().pcs().is_empty());
    execute(&mut executor, &[1]).unwrap();
    assert_eq!(executor.observer().pcs(), [1]);
}

#[test]
fn hits_are_counted_anew_in_each_execution() {
    let kernel = Kernel::linux();
    let map = HitcountsMapObserver::new(OwnedMapObserver::new("hits", vec![0; 64]));
    let mut executor = InProcess::new(device(&kernel), map, harness(&kernel)).unwrap();
    for input in [&[1, 1, 1, 2][..], &[3]] {
        execute(&mut executor, input).unwrap();
        let mut expected = [0; 64];
        let pcs: Vec<_> = input.iter().map(|byte| u64::from(*byte)).collect();
        count_hits(&pcs, &mut expected);
        // AFL's classes: three times is a class of its own, whose bit is 4.
        expected.iter_mut().filter(|hits| **hits == 3).for_each(|hits| *hits = 4);
        assert_eq!(executor.observer()[..], expected);
    }
}

#[test]
fn an_input_is_new_if_it_reaches_a_pc_that_none_did() {
    let kernel = Kernel::linux();
    let mut executor = pcs(&kernel);
    let mut fuzzer = Fuzzer::new(NoveltyFeedback::new(executor.observer(), Ranges::default()));
    assert!(fuzzer.is_new(&mut executor, bytes(&[1, 2])));
    assert!(!fuzzer.is_new(&mut executor, bytes(&[1, 2])));
    assert!(fuzzer.is_new(&mut executor, bytes(&[1, 2, 3])));
    // The same blocks in another order.
    assert!(!fuzzer.is_new(&mut executor, bytes(&[2, 1])));
    assert_eq!(fuzzer.state.corpus().count(), 2);
    let second = fuzzer.state.corpus().get(CorpusId(1)).unwrap().borrow();
    assert_eq!(second.metadata::<NewPcs>().unwrap().0, [3]);
}

#[test]
fn a_crash_is_a_solution_and_reaches_nothing() {
    let kernel = Kernel::linux();
    let mut executor = pcs(&kernel);
    let feedback = NoveltyFeedback::new(executor.observer(), Ranges::default());
    let mut fuzzer = Fuzzer::new(feedback.named("reached"));
    assert!(!fuzzer.is_new(&mut executor, bytes(&[0xff])));
    assert_eq!((fuzzer.state.solutions().count(), fuzzer.state.corpus().count()), (1, 0));
    let reached = fuzzer.state.named_metadata::<NoveltyMetadata>("reached").unwrap();
    assert!(reached.map().is_empty());
}

#[test]
fn a_kernel_without_comparisons_is_an_error_and_pcs_go_on() {
    let kernel = Kernel::linux().without_comparisons();
    let mut executor = pcs(&kernel);
    assert!(executor.compare(&bytes(&[1]), &mut |_| panic!("no trace")).is_err());
    execute(&mut executor, &[4]).unwrap();
    assert_eq!(executor.observer().pcs(), [4]);
}

#[test]
fn a_thread_that_is_traced_no_more_is_an_error() {
    let kernel = Kernel::linux();
    let mut executor = pcs(&kernel);
    // EINVAL: for comparisons, then for PCs again.
    (0..2).for_each(|_| kernel.fail(Operation::Enable, 22));
    assert!(executor.compare(&bytes(&[1]), &mut |_| ()).is_err());
    let (mut state, input) = (NopState::<BytesInput>::new(), bytes(&[1]));
    assert!(executor.run_target(&mut (), &mut state, &mut (), &input).is_err());

    kernel.fail(Operation::Enable, 16);
    let observer = SignalObserver::new("pcs");
    let refused = InProcess::new(device(&kernel), observer, harness(&kernel)).err();
    assert_eq!(refused.map(|error| error.kind()), Some(ErrorKind::AlreadyEnabled));
}
