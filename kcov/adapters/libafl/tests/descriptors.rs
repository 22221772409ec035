//! The descriptors of children. A program of its own, because other tests open and close descriptors.

mod support;

use kcov::fake::Kernel;
use kcov_libafl::{Fork, Forked, SignalObserver};
use libafl::executors::ExitKind;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::time::Duration;
use support::execute;

fn open() -> Vec<u8> {
    // SAFETY: the request changes nothing.
    let is_open = |fd: &i32| unsafe { libc::fcntl(*fd, libc::F_GETFD) } != -1;
    let all: Vec<i32> = (0..1024).filter(is_open).collect();
    all.iter().flat_map(|fd| fd.to_ne_bytes()).collect()
}

#[test]
fn children_have_no_descriptor_of_the_server() {
    // SAFETY: the program's other thread only waits for this test.
    let fork = unsafe { Fork::new() };
    let observer = SignalObserver::new("pcs");
    let harness = |input: &BytesInput| {
        if open() == input.mutator_bytes() { ExitKind::Ok } else { ExitKind::Crash }
    };
    let (builder, limit) = (Kernel::linux().builder(), Duration::from_secs(60));
    let executor = Forked::new(fork, builder, limit, observer, harness).unwrap();
    let before = open();
    let mut executor = executor.served().unwrap();
    assert_eq!(execute(&mut executor, &before).unwrap(), ExitKind::Ok);
}
