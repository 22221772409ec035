//! Executions in children, on the fake kernel. Its buffers are private memory, so a thread stands
//! for the child where traces matter, and a process where its end matters.

mod support;

use kcov::fake::Kernel;
use kcov::{BufferSize, Operation};
use kcov_libafl::{CompareExecutor, Ended, Fork, Forked, SignalObserver, Spawn};
use libafl::Error;
use libafl::executors::ExitKind;
use libafl::inputs::{BytesInput, HasMutatorBytes};
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{io, panic, process, thread};
use support::{bytes, execute};

/// Enough for a child on a busy machine.
const LIMIT: Duration = Duration::from_secs(3);

fn run<F, C>(executor: &mut Forked<F, SignalObserver, (), C>, input: u8) -> Result<ExitKind, Error>
where
    F: FnMut(&BytesInput) -> ExitKind,
    C: Spawn,
{
    execute(executor, &[input])
}

/// A child without a process: a thread, which ends as the next execution's order says.
struct Thread {
    ended: Vec<Ended>,
    /// The number of children that run out of time before they start.
    late: usize,
}

impl Spawn for Thread {
    fn spawn(&mut self, _: Duration, child: impl FnOnce()) -> io::Result<Ended> {
        if self.late > 0 {
            self.late -= 1;
            return Ok(Ended::TimedOut);
        }
        let ended = self.ended.pop().unwrap_or(Ended::Exited);
        // The session ends with its thread, in which it stays.
        struct Moved<F>(F);
        // SAFETY: this thread waits for the other one, and nothing that the child uses is bound to
        // this thread.
        unsafe impl<F> Send for Moved<F> {}
        impl<F: FnOnce()> Moved<F> {
            fn run(self) {
                (self.0)();
            }
        }
        let child = Moved(child);
        let result = thread::scope(|scope| scope.spawn(|| child.run()).join());
        if result.is_err() { Ok(Ended::Signaled) } else { Ok(ended) }
    }
}

/// Executors whose harness records the input as a PC.
fn threads(
    kernel: &Kernel,
    ended: &[Ended],
) -> Forked<impl FnMut(&BytesInput) -> ExitKind + use<>, SignalObserver, (), Thread> {
    let ended = ended.iter().rev().copied().collect();
    executor(kernel, Thread { ended, late: 0 })
}

fn executor(
    kernel: &Kernel,
    spawn: Thread,
) -> Forked<impl FnMut(&BytesInput) -> ExitKind + use<>, SignalObserver, (), Thread> {
    let harness = {
        let kernel = kernel.clone();
        move |input: &BytesInput| {
            let byte = input.mutator_bytes()[0];
            kernel.call(|trace| trace.pc(byte.into()));
            match byte {
                0xf0 => kernel.store_counts(u64::MAX / 2),
                0xf1 => kernel.call(|trace| (0..600).for_each(|pc| trace.pc(pc))),
                // Not `panic!`, which would print.
                0xf2 => panic::resume_unwind(Box::new("as ordered")),
                _ => {}
            }
            if byte == 0xf3 { ExitKind::Oom } else { ExitKind::Ok }
        }
    };
    let builder = kernel.builder().size(BufferSize::words(512));
    let observer = SignalObserver::new("pcs");
    Forked::new(spawn, builder, LIMIT, observer, harness).unwrap()
}

#[test]
fn a_trace_is_of_one_child_however_it_ends() {
    for kernel in [Kernel::linux(), Kernel::netbsd()] {
        let ends = [Ended::Exited, Ended::Signaled, Ended::TimedOut];
        let mut executor = threads(&kernel, &ends);
        for (input, kind) in [(1, ExitKind::Ok), (2, ExitKind::Crash), (3, ExitKind::Timeout)] {
            assert_eq!(run(&mut executor, input).unwrap(), kind);
            assert_eq!(executor.observer().pcs(), [u64::from(input)]);
        }
        assert_eq!(run(&mut executor, 0xf2).unwrap(), ExitKind::Crash);
        assert_eq!(executor.observer().pcs(), [0xf2]);
        assert_eq!(run(&mut executor, 0xf3).unwrap(), ExitKind::Oom);
        assert_eq!(run(&mut executor, 4).unwrap(), ExitKind::Ok);
        assert_eq!(executor.observer().pcs(), [4]);
        assert_eq!(kernel.open_devices(), 1);
    }
}

#[test]
fn a_full_buffer_gives_what_it_holds_and_a_corrupt_count_nothing() {
    let kernel = Kernel::linux();
    let mut executor = threads(&kernel, &[]);
    run(&mut executor, 0xf0).unwrap();
    assert!(executor.observer().pcs().is_empty());
    run(&mut executor, 0xf1).unwrap();
    assert_eq!(executor.observer().pcs().len(), 511);
    run(&mut executor, 5).unwrap();
    assert_eq!(executor.observer().pcs(), [5]);
}

#[test]
fn a_device_that_is_refused_once_is_opened_again() {
    let kernel = Kernel::linux();
    let mut executor = threads(&kernel, &[]);
    let busy = 16;
    kernel.fail(Operation::Enable, busy);
    assert_eq!(run(&mut executor, 6).unwrap(), ExitKind::Ok);
    assert_eq!(executor.observer().pcs(), [6]);
    assert_eq!(kernel.open_devices(), 1);
}

#[test]
fn another_child_is_tried_if_one_is_late() {
    let kernel = Kernel::linux();
    let late = |late| executor(&kernel, Thread { ended: Vec::new(), late });
    assert_eq!(run(&mut late(4), 6).unwrap(), ExitKind::Ok);
    assert_eq!(late(4).compare(&bytes(&[6]), &mut |_| {}).unwrap(), ExitKind::Ok);
    let why = "none of 5 children enabled tracing; the last one took too long";
    for error in [
        run(&mut late(5), 6).unwrap_err(),
        late(5).compare(&bytes(&[6]), &mut |_| panic!("no trace")).unwrap_err(),
    ] {
        assert!(error.to_string().contains(why), "{error}");
    }
}

#[test]
fn comparisons_come_from_a_child_and_pcs_go_on() {
    let kernel = Kernel::linux();
    let mut executor = threads(&kernel, &[]);
    let mut records = 0;
    let kind = executor.compare(&bytes(&[7]), &mut |trace| records = trace.len()).unwrap();
    // The fake kernel records none of PCs.
    assert_eq!((kind, records), (ExitKind::Ok, 0));
    run(&mut executor, 8).unwrap();
    assert_eq!(executor.observer().pcs(), [8]);

    let kernel = Kernel::linux().without_comparisons();
    let mut executor = threads(&kernel, &[]);
    assert!(executor.compare(&bytes(&[7]), &mut |_| panic!("no trace")).is_err());
    run(&mut executor, 9).unwrap();
    assert_eq!(executor.observer().pcs(), [9]);
}

/// Ends its process as the input says.
fn ending(input: &BytesInput) -> ExitKind {
    match input.mutator_bytes()[0] {
        1 => process::exit(77),
        2 => process::abort(),
        3 => loop {
            thread::sleep(LIMIT);
        },
        4 => drop(Command::new("/bin/false").exec()),
        5 => {
            // SAFETY: the child uses no descriptor any more, and it owns its copies.
            (0..1024).for_each(|fd| _ = unsafe { libc::close(fd) });
        }
        // SAFETY: no other thread exists in the child, and it then ends.
        6 => _ = unsafe { libc::raise(libc::SIGKILL) },
        7 => return ExitKind::Crash,
        8 => {
            let parent = std::os::unix::process::parent_id();
            // SAFETY: the call has no preconditions.
            _ = unsafe { libc::kill(parent as i32, libc::SIGKILL) };
        }
        _ => {}
    }
    ExitKind::Ok
}

/// Two executors, each with its own kernel. One forks children itself, the other has a server.
fn forking<F: FnMut(&BytesInput) -> ExitKind + Clone>(
    harness: &F,
) -> [Forked<F, SignalObserver>; 2] {
    let make = || {
        // SAFETY: other threads of this program hold no lock that the child takes. No other test
        // uses this kernel, and the C library allows allocation after fork(2).
        let fork = unsafe { Fork::new() };
        let observer = SignalObserver::new("pcs");
        Forked::new(fork, Kernel::linux().builder(), LIMIT, observer, harness.clone()).unwrap()
    };
    [make(), make().served().unwrap()]
}

#[test]
fn this_process_survives_every_end_of_a_child() {
    let all = [
        (0, ExitKind::Ok),
        (1, ExitKind::Ok),
        (2, ExitKind::Crash),
        (3, ExitKind::Timeout),
        (4, ExitKind::Ok),
        (5, ExitKind::Ok),
        (6, ExitKind::Crash),
        (7, ExitKind::Crash),
    ];
    for mut executor in forking(&ending) {
        for (input, kind) in all {
            let start = Instant::now();
            assert_eq!(run(&mut executor, input).unwrap(), kind, "{input}");
            assert!(input != 3 || start.elapsed() >= LIMIT);
            assert_eq!(run(&mut executor, 0).unwrap(), ExitKind::Ok, "after {input}");
        }
    }
}

#[test]
fn comparisons_are_recorded_in_a_child() {
    for mut executor in forking(&ending) {
        for (input, kind) in [(0, ExitKind::Ok), (2, ExitKind::Crash), (7, ExitKind::Crash)] {
            assert_eq!(executor.compare(&bytes(&[input]), &mut |_| ()).unwrap(), kind, "{input}");
            assert_eq!(run(&mut executor, 0).unwrap(), ExitKind::Ok, "after {input}");
        }
    }
}

#[test]
fn a_killed_server_is_replaced_and_the_last_ends_with_the_executor() {
    let (mut reader, writer) = io::pipe().unwrap();
    let [_, mut executor] = forking(&ending);
    for _ in 0..2 {
        assert_eq!(run(&mut executor, 8).unwrap(), ExitKind::Crash);
        assert_eq!(run(&mut executor, 0).unwrap(), ExitKind::Ok);
    }
    drop((executor, writer));
    // The read ends when no process has the pipe's other end.
    assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0);
}

#[test]
fn children_get_the_whole_input() {
    let harness = |input: &BytesInput| {
        let bytes = input.mutator_bytes();
        let is_whole = bytes.iter().enumerate().all(|(at, byte)| *byte == at as u8);
        if is_whole && bytes.len() % 2 == 1 { ExitKind::Ok } else { ExitKind::Crash }
    };
    for mut executor in forking(&harness) {
        for length in [1, 5001, (1 << 20) + 1] {
            let input: Vec<u8> = (0..length).map(|at: usize| at as u8).collect();
            assert_eq!(execute(&mut executor, &input).unwrap(), ExitKind::Ok, "{length}");
        }
    }
}

#[test]
fn processes_that_a_child_leaves_are_killed() {
    let (mut reader, writer) = io::pipe().unwrap();
    // SAFETY: the child only forks, sleeps and exits.
    let mut fork = unsafe { Fork::new() };
    let ended = fork.spawn(LIMIT, || {
        // SAFETY: as above.
        if unsafe { libc::fork() } == 0 {
            thread::sleep(Duration::from_secs(600));
        }
    });
    assert_eq!(ended.unwrap(), Ended::Exited);
    drop(writer);
    // The read ends when no process has the pipe's other end.
    let start = Instant::now();
    assert_eq!(io::Read::read(&mut reader, &mut [0]).unwrap(), 0);
    assert!(start.elapsed() < Duration::from_secs(60));
}
