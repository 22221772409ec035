//! Executions in children, on a kernel with kcov and comparisons. Needs the feature `guest-tests`:
//! `ci/check guest` runs it in a guest.

mod support;

use kcov::Device;
use kcov_libafl::{CompareExecutor, Fork, Forked, SignalObserver};
use libafl::executors::ExitKind;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::time::Duration;
use std::{fs, io};
use support::{bytes, execute};

/// Guests are slow.
const LIMIT: Duration = Duration::from_secs(60);

/// An executor with this descriptor. It forks children itself, or has a server.
fn executor<F: FnMut(&BytesInput) -> ExitKind>(
    fd: i32,
    served: bool,
    harness: F,
) -> Forked<F, SignalObserver> {
    // SAFETY: other threads of this program hold no lock that the child takes, and the C library
    // allows allocation after fork(2).
    let fork = unsafe { Fork::new() };
    let observer = SignalObserver::new("pcs");
    let builder = Device::builder().fd(fd);
    let executor = Forked::new(fork, builder, LIMIT, observer, harness).unwrap();
    if served { executor.served().unwrap() } else { executor }
}

#[test]
fn large_inputs_are_no_crashes() {
    let harness = |input: &BytesInput| {
        let _ = fs::metadata("/");
        let mut copy = input.mutator_bytes().to_vec();
        copy.extend_from_within(..);
        if copy.iter().all(|byte| *byte == 7) { ExitKind::Ok } else { ExitKind::Oom }
    };
    for served in [false, true] {
        let mut executor = executor(200, served, harness);
        for length in [100, 300_000, 1_000_000] {
            let input = vec![7; length];
            for _ in 0..10 {
                let mut records = 0;
                let kind = executor.compare(&bytes(&input), &mut |trace| records = trace.len());
                assert_eq!(kind.unwrap(), ExitKind::Ok, "{length} bytes");
                assert!(records > 0);
                assert_eq!(execute(&mut executor, &input).unwrap(), ExitKind::Ok);
                assert!(!executor.observer().pcs().is_empty());
            }
        }
    }
}

#[test]
fn what_a_child_does_to_the_device_ends_with_it() {
    const DEVICE: i32 = 210;
    let harness = |input: &BytesInput| {
        match input.mutator_bytes()[0] {
            1 => {
                // SAFETY: the child accesses the mapping next when tracing ends, which kills it.
                let failed = unsafe { libc::ftruncate(DEVICE, 0) } != 0;
                assert!(!failed, "{}", io::Error::last_os_error());
            }
            2 => {
                // SAFETY: the child uses no descriptor any more, and it owns its copies.
                (0..1024).for_each(|fd| _ = unsafe { libc::close(fd) });
            }
            _ => _ = fs::metadata("/"),
        }
        ExitKind::Ok
    };
    for served in [false, true] {
        let mut executor = executor(DEVICE, served, harness);
        // The end of tracing kills the child that has truncated the buffer. The trace is lost.
        for (input, kind) in [(1, ExitKind::Crash), (2, ExitKind::Ok)] {
            assert_eq!(execute(&mut executor, &[input]).unwrap(), kind, "{input}");
            assert_eq!(execute(&mut executor, &[0]).unwrap(), ExitKind::Ok, "after {input}");
            assert!(!executor.observer().pcs().is_empty(), "after {input}");
            let kind = executor.compare(&bytes(&[0]), &mut |trace| assert!(!trace.is_empty()));
            assert_eq!(kind.unwrap(), ExitKind::Ok, "after {input}");
        }
    }
}
