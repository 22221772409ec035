//! Measures executions per second of a program of three calls: in this process and in children,
//! each with and without coverage. The best of several rounds counts.
use kcov::Device;
use kcov_libafl::Param::{Bytes, Length, Number, Result};
use kcov_libafl::{Calls, Fork, Forked, Generate, InProcess, Program, Resource, Signal};
use kcov_libafl::{SignalObserver, Spawn};
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::generators::Generator;
use libafl::observers::ObserversTuple;
use libafl::state::NopState;
use libafl_bolts::HasLen;
use std::error::Error;
use std::time::{Duration, Instant};

const ROUNDS: usize = 5;
const LIMIT: Duration = Duration::from_secs(1);

static FILE: Resource = Resource::new("file", |fd| {
    // SAFETY: only programs use the descriptor.
    unsafe { libc::close(fd as i32) };
});

fn calls() -> Calls {
    Calls::new()
        // SAFETY: dup(2) has no preconditions.
        .returning(&FILE, "dup", &[Number], |_| unsafe { libc::dup(0) }.into())
        .call("write", &[Result(&FILE), Bytes(0), Length], |a| {
            // SAFETY: the memory has this length.
            unsafe { libc::write(a[0] as i32, a[1] as *const _, a[2] as usize) as i64 }
        })
}

/// Executions per second.
fn rate<E>(
    executions: u32,
    mut run: impl FnMut() -> std::result::Result<(), E>,
) -> std::result::Result<f64, E> {
    let start = Instant::now();
    for _ in 0..executions {
        run()?;
    }
    Ok(f64::from(executions) / start.elapsed().as_secs_f64())
}

/// Executes a program as LibAFL's fuzzer does.
fn execute<E>(
    executor: &mut E,
    state: &mut NopState<Program>,
    program: &Program,
) -> std::result::Result<(), libafl::Error>
where
    E: Executor<(), Program, NopState<Program>, ()> + HasObservers,
    E::Observers: ObserversTuple<Program, NopState<Program>>,
{
    executor.observers_mut().pre_exec_all(state, program)?;
    let kind = executor.run_target(&mut (), state, &mut (), program)?;
    executor.observers_mut().post_exec_all(state, program, &kind)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let (calls, mut state) = (calls(), NopState::<Program>::new());
    let program = loop {
        let program = Generate::new(&calls, 3).generate(&mut state)?;
        if program.len() == 3 {
            break program;
        }
    };
    let harness = |program: &Program| {
        calls.run(program);
        ExitKind::Ok
    };
    let observer = || SignalObserver::new("pcs", Signal::Pc);
    // SAFETY: the process has only one thread.
    let mut fork = unsafe { Fork::new() };
    let mut best = [0.0_f64; 4];
    for _ in 0..ROUNDS {
        let here = rate(10_000, || Ok::<_, libafl::Error>(_ = harness(&program)))?;
        let children = rate(500, || fork.spawn(LIMIT, || _ = harness(&program)).map(drop))?;
        let mut executor = InProcess::new(Device::open()?, observer(), harness)?;
        let here_traced = rate(10_000, || execute(&mut executor, &mut state, &program))?;
        drop(executor);
        let mut executor = Forked::new(fork, Device::builder(), LIMIT, observer(), harness)?;
        let children_traced = rate(500, || execute(&mut executor, &mut state, &program))?;
        let all = [here, here_traced, children, children_traced];
        best.iter_mut().zip(all).for_each(|(best, rate)| *best = best.max(rate));
    }
    let [here, here_traced, children, children_traced] = best;
    print!("{}", calls.text(&program));
    println!("in process: {here:.0}/s, traced {here_traced:.0}/s: {:.2}", here / here_traced);
    println!(
        "forked: {children:.0}/s, traced {children_traced:.0}/s: {:.2}",
        children / children_traced
    );
    Ok(())
}
