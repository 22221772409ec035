//! Executions whose code runs in the background, on the fake kernel.

mod support;

use kcov::fake::Kernel;
use kcov::remote::linux::{GlobalHandle, Remote};
use kcov::{BufferSize, Comparison};
use kcov_libafl::{Background, CompareExecutor, Signal, SignalObserver};
use libafl::executors::{Executor, ExitKind};
use libafl::inputs::{BytesInput, HasMutatorBytes};
use libafl::state::NopState;
use std::time::Duration;
use support::bytes;

const BUS: GlobalHandle = GlobalHandle::usb(1);

/// Each byte of the input is a PC in a section of the bus.
fn background(
    kernel: &Kernel,
) -> Background<impl FnMut(&BytesInput) -> ExitKind + use<>, SignalObserver> {
    let device = kernel.builder().size(BufferSize::words(512)).open().unwrap();
    let observer = SignalObserver::new("pcs", Signal::Pc);
    let kernel = kernel.clone();
    let harness = move |input: &BytesInput| {
        kernel.call(|trace| trace.pc(0x99));
        kernel.section(BUS).run(|trace| {
            input.mutator_bytes().iter().for_each(|pc| trace.pc((*pc).into()));
            trace.comparison(Comparison::from_words([3, 0xcafe, 7, 0x1000]));
        });
        ExitKind::Ok
    };
    let background = Background::new(device, Remote::new().global(BUS), observer, harness);
    background.unwrap().with_quiet(Duration::from_millis(1), Duration::from_millis(100))
}

fn run(
    executor: &mut Background<impl FnMut(&BytesInput) -> ExitKind, SignalObserver>,
    input: &[u8],
) -> Vec<u64> {
    let mut state = NopState::<BytesInput>::new();
    let kind = executor.run_target(&mut (), &mut state, &mut (), &bytes(input)).unwrap();
    assert_eq!(kind, ExitKind::Ok);
    executor.observer().pcs().to_vec()
}

#[test]
fn a_trace_is_of_the_background_work_of_one_execution() {
    let kernel = Kernel::linux();
    let mut executor = background(&kernel);
    assert_eq!(run(&mut executor, &[1, 2]), [1, 2]);
    // Other work on the bus.
    kernel.section(BUS).run(|trace| trace.pc(9));
    assert_eq!(run(&mut executor, &[3]), [3]);
    // More in all than the buffer holds.
    for byte in 0..40 {
        assert_eq!(run(&mut executor, &[byte; 100]), [u64::from(byte); 100]);
    }
}

#[test]
fn comparisons_come_from_the_background_and_pcs_go_on() {
    let kernel = Kernel::linux();
    let mut executor = background(&kernel);
    let mut operands = Vec::new();
    let look = |trace: kcov::Trace<'_, _>| {
        operands = trace.iter().map(|comparison: Comparison| comparison.operands()).collect();
    };
    executor.compare(&bytes(&[1]), look).unwrap();
    assert_eq!(operands, [(0xcafe, 7)]);
    assert_eq!(run(&mut executor, &[4]), [4]);

    let kernel = Kernel::linux().without_comparisons();
    let mut executor = background(&kernel);
    assert!(executor.compare(&bytes(&[1]), |_| panic!("no trace")).is_err());
    assert_eq!(run(&mut executor, &[5]), [5]);
}
