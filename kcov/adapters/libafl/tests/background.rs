//! Executions whose code runs in the background, on the fake kernel.

mod support;

use kcov::fake::Kernel;
use kcov::remote::linux::{GlobalHandle, Remote};
use kcov::{BufferSize, Comparison, Device};
use kcov_libafl::{CompareExecutor, InProcess, SignalObserver, Sources};
use libafl::executors::ExitKind;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::time::Duration;
use support::{bytes, execute};

const BUS: GlobalHandle = GlobalHandle::usb(1);

/// Each byte of the input is a PC in a section of the bus.
fn background(
    kernel: &Kernel,
) -> InProcess<impl FnMut(&BytesInput) -> ExitKind + use<>, SignalObserver> {
    let device = kernel.builder().size(BufferSize::words(512)).open().unwrap();
    let observer = SignalObserver::new("pcs");
    let kernel = kernel.clone();
    let harness = move |input: &BytesInput| {
        kernel.call(|trace| trace.pc(0x99));
        kernel.section(BUS).run(|trace| {
            input.mutator_bytes().iter().for_each(|pc| trace.pc((*pc).into()));
            trace.comparison(Comparison::from_words([3, 0xcafe, 7, 0x1000]));
        });
        ExitKind::Ok
    };
    InProcess::background(sources(device), observer, harness)
}

fn sources(device: Device) -> Sources {
    let sources = Sources::new(device, Remote::new().global(BUS)).unwrap();
    sources.with_quiet(Duration::from_millis(1), Duration::from_millis(100))
}

fn run(
    executor: &mut InProcess<impl FnMut(&BytesInput) -> ExitKind, SignalObserver>,
    input: &[u8],
) -> Vec<u64> {
    assert_eq!(execute(executor, input).unwrap(), ExitKind::Ok);
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

/// The kernel adds no record to a count that the buffer cannot hold.
#[test]
fn a_corrupt_count_costs_one_trace() {
    let kernel = Kernel::linux();
    let mut executor = background(&kernel);
    assert_eq!(run(&mut executor, &[1]), [1]);
    kernel.store_counts(u64::MAX);
    assert_eq!(run(&mut executor, &[2]), [2]);
}

#[test]
fn comparisons_come_from_the_background_and_pcs_go_on() {
    let kernel = Kernel::linux();
    let mut executor = background(&kernel);
    let mut operands = Vec::new();
    let mut look = |trace: kcov::Trace<'_, _>| {
        operands = trace.iter().map(|comparison: Comparison| comparison.operands()).collect();
    };
    executor.compare(&bytes(&[1]), &mut look).unwrap();
    assert_eq!(operands, [(0xcafe, 7)]);
    assert_eq!(run(&mut executor, &[4]), [4]);

    let kernel = Kernel::linux().without_comparisons();
    let mut executor = background(&kernel);
    assert!(executor.compare(&bytes(&[1]), &mut |_| panic!("no trace")).is_err());
    assert_eq!(run(&mut executor, &[5]), [5]);
}

#[test]
fn a_thread_and_its_background_are_traced_at_once() {
    let kernel = Kernel::linux();
    let open = || kernel.builder().size(BufferSize::words(512)).open().unwrap();
    let observer = SignalObserver::new("pcs");
    let harness = {
        let kernel = kernel.clone();
        move |input: &BytesInput| {
            let byte = u64::from(input.mutator_bytes()[0]);
            let comparison = |operand| Comparison::from_words([3, operand, byte, 0x1000]);
            kernel.call(|trace| {
                trace.pc(byte);
                trace.comparison(comparison(0xcafe));
            });
            kernel.section(BUS).run(|trace| {
                trace.pc(byte + 1);
                trace.comparison(comparison(0xbeef));
            });
            ExitKind::Ok
        }
    };
    let executor = InProcess::new(open(), observer, harness).unwrap();
    let mut executor = executor.with_sources(sources(open()));
    for _ in 0..2 {
        execute(&mut executor, &[7]).unwrap();
        assert_eq!(executor.observer().pcs(), [7, 8]);
        let mut operands = Vec::new();
        let mut look = |trace: kcov::Trace<'_, _>| {
            operands.extend(trace.iter().map(|comparison: Comparison| comparison.operands()));
        };
        executor.compare(&bytes(&[9]), &mut look).unwrap();
        assert_eq!(operands, [(0xcafe, 9), (0xbeef, 9)]);
    }
}
