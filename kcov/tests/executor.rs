//! Tests the executor of `examples/tested_executor` without a kernel, on the fake kernels of both
//! systems. A thread stands for a child.

#[path = "../examples/tested_executor/executor.rs"]
mod executor;

use executor::{Executor, Verdict};
use kcov::fake::{Kernel, Recorder};
use kcov::mode::TracePc;
use kcov::{BufferSize, ChildBuffer, Error, ErrorKind, Operation};
use std::{mem, panic, thread};

fn kernels() -> [Kernel; 2] {
    [Kernel::linux(), Kernel::netbsd()]
}

fn executor(kernel: &Kernel) -> Executor {
    Executor::new(kernel.builder().size(BufferSize::words(1))).expect("it opens")
}

/// The words of the smallest buffer.
fn page_words() -> usize {
    rustix::param::page_size() / 8
}

/// The ways a child ends.
#[derive(Clone, Copy)]
enum End {
    Disables,
    /// As after SIGKILL: the child runs no more code.
    IsKilled,
    Panics,
}

/// A child that makes one system call.
fn child<'k>(
    kernel: &'k Kernel,
    end: End,
    call: impl FnOnce(&mut Recorder) + Send + 'k,
) -> impl FnOnce(&mut ChildBuffer<TracePc>) -> Result<(), Error> + 'k {
    move |buffer| {
        let body = move || {
            let session = buffer.enable()?;
            kernel.call(call);
            match end {
                End::Disables => session.disable().map(drop),
                End::IsKilled => {
                    mem::forget(session);
                    Ok(())
                }
                // Not `panic!`, which would print.
                End::Panics => panic::resume_unwind(Box::new("as ordered")),
            }
        };
        thread::scope(|scope| scope.spawn(body).join()).unwrap_or(Ok(()))
    }
}

#[test]
fn what_is_new_is_counted_once() {
    for kernel in kernels() {
        let mut executor = executor(&kernel);
        let mut run = |call: fn(&mut Recorder)| executor.run(child(&kernel, End::Disables, call));
        assert_eq!(
            run(|trace| [1, 2, 1].into_iter().for_each(|pc| trace.pc(pc))),
            Ok(Verdict::New(2))
        );
        assert_eq!(run(|trace| [2, 1].into_iter().for_each(|pc| trace.pc(pc))), Ok(Verdict::Known));
        assert_eq!(run(|trace| trace.pc(3)), Ok(Verdict::New(1)));
        assert_eq!(run(|_| ()), Ok(Verdict::Known));
    }
}

#[test]
fn a_full_buffer_is_told() {
    for kernel in kernels() {
        let mut executor = executor(&kernel);
        let many = |trace: &mut Recorder| (0..100_000).for_each(|pc| trace.pc(pc));
        // One word of the page is the count.
        let most = Verdict::Truncated(page_words() - 1);
        assert_eq!(executor.run(child(&kernel, End::Disables, many)), Ok(most));
        let one = |trace: &mut Recorder| trace.pc(1 << 20);
        assert_eq!(executor.run(child(&kernel, End::Disables, one)), Ok(Verdict::New(1)));
    }
}

/// A child that dies leaves its records, and the next child is traced.
#[test]
fn a_child_that_dies_leaves_its_trace() {
    for kernel in kernels() {
        let mut executor = executor(&kernel);
        for (case, end) in [End::IsKilled, End::Panics, End::Disables].into_iter().enumerate() {
            let call = move |trace: &mut Recorder| trace.pc(case as u64);
            assert_eq!(executor.run(child(&kernel, end, call)), Ok(Verdict::New(1)));
        }
        drop(executor);
        assert_eq!(kernel.open_devices(), 0);
    }
}

#[test]
fn a_count_that_no_kernel_stores_is_no_coverage() {
    for kernel in kernels() {
        let mut executor = executor(&kernel);
        for count in [page_words() as u64, 1 << 32, u64::MAX - 1] {
            let verdict = executor.run(|buffer| -> Result<(), Error> {
                child(&kernel, End::Disables, |trace| trace.pc(1))(buffer)?;
                kernel.store_counts(count);
                Ok(())
            });
            assert_eq!(verdict, Ok(Verdict::Corrupt));
        }
        // The executor kept no record of those cases, and the count was reset.
        let one = |trace: &mut Recorder| trace.pc(1);
        assert_eq!(executor.run(child(&kernel, End::Disables, one)), Ok(Verdict::New(1)));
    }
}

/// The errno that means "the device is in use" on each system.
#[test]
fn a_child_that_cannot_enable_is_told_of() {
    for (kernel, errno) in [(Kernel::linux(), 22), (Kernel::netbsd(), 16)] {
        let mut executor = executor(&kernel);
        kernel.fail(Operation::Enable, errno);
        let error = executor.run(child(&kernel, End::Disables, |_| ())).expect_err("as ordered");
        assert_eq!(error.kind(), ErrorKind::AlreadyEnabled);
        assert_eq!(error.raw_os_error(), Some(errno));
        let one = |trace: &mut Recorder| trace.pc(1);
        assert_eq!(executor.run(child(&kernel, End::Disables, one)), Ok(Verdict::New(1)));
    }
}

#[test]
fn a_device_that_does_not_open_is_told_of() {
    for kernel in kernels() {
        kernel.fail(Operation::Map, 12);
        let builder = kernel.builder().size(BufferSize::words(1));
        let error = Executor::new(builder).expect_err("as ordered");
        assert_eq!((error.operation(), error.kind()), (Operation::Map, ErrorKind::OutOfMemory));
        assert_eq!(kernel.open_devices(), 0);
    }
}
