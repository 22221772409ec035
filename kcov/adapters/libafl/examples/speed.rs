//! Measures executions per second of a program of three calls, and where the time goes: in this
//! process and in children, without coverage, traced, with the trace read, and in a whole fuzzer.
//! Each measurement is a process of its own, because forking costs more in a larger process. The best
//! of several rounds counts.
use kcov::mode::TracePc;
use kcov::{Device, Trace};
use kcov_libafl::Param::{Bytes, Length, Number, Result};
use kcov_libafl::{Calls, CoverageObserver, Fork, Forked, Fuzz, Generate, InProcess, Program};
use kcov_libafl::{Resource, SignalObserver, Spawn};
use libafl::executors::{Executor, ExitKind, HasObservers};
use libafl::generators::Generator;
use libafl::observers::{Observer, ObserversTuple};
use libafl::state::{HasRand as _, NopState};
use libafl_bolts::rands::Rand as _;
use libafl_bolts::{HasLen, Named};
use std::borrow::Cow;
use std::error::Error;
use std::process::Command;
use std::time::{Duration, Instant};
use std::{env, fs, process};

const ROUNDS: usize = 5;
const LIMIT: Duration = Duration::from_secs(1);
const PARTS: [&str; 4] = ["calls", "traced", "read", "fuzzer"];
/// In this process, and in the children of a server.
const WAYS: [&str; 2] = ["in-process", "served"];

type Rate = std::result::Result<f64, Box<dyn Error>>;

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

/// Ignores the traces.
struct Unread;

impl CoverageObserver for Unread {
    fn observe(&mut self, _: Trace<'_, TracePc>) {}
}

impl<I, S> Observer<I, S> for Unread {}

impl Named for Unread {
    fn name(&self) -> &Cow<'static, str> {
        &Cow::Borrowed("unread")
    }
}

/// Executions per second.
fn rate(executions: u32, mut run: impl FnMut() -> std::result::Result<(), Box<dyn Error>>) -> Rate {
    let start = Instant::now();
    for _ in 0..executions {
        run()?;
    }
    Ok(f64::from(executions) / start.elapsed().as_secs_f64())
}

/// Executes a program as LibAFL's fuzzer does.
fn executor<E>(executions: u32, mut executor: E, program: &Program) -> Rate
where
    E: Executor<(), Program, NopState<Program>, ()> + HasObservers,
    E::Observers: ObserversTuple<Program, NopState<Program>>,
{
    let mut state = NopState::new();
    rate(executions, || {
        executor.observers_mut().pre_exec_all(&mut state, program)?;
        let kind = executor.run_target(&mut (), &mut state, &mut (), program)?;
        Ok(executor.observers_mut().post_exec_all(&mut state, program, &kind)?)
    })
}

/// Runs a fuzzer whose harness ignores the input.
fn fuzzer(executions: u64, fuzz: Fuzz, harness: impl Fn() -> ExitKind) -> Rate {
    let directory = env::temp_dir().join(format!("speed-{}", process::id()));
    let fuzz = fuzz.corpus(directory.join("corpus")).crashes(directory.join("crashes"));
    let fuzz = fuzz.comparisons(false).executions(executions);
    let summary = fuzz.bytes(&[b"seed"], |_| harness())?;
    fs::remove_dir_all(directory)?;
    Ok(summary.executions as f64 / summary.time.as_secs_f64())
}

fn measure(way: &str, part: &str, calls: &Calls, program: &Program) -> Rate {
    let harness = |program: &Program| {
        calls.run(program);
        ExitKind::Ok
    };
    let observer = SignalObserver::new("pcs");
    if way == "in-process" {
        return match part {
            "calls" => rate(10_000, || Ok(_ = harness(program))),
            "traced" => {
                executor(10_000, InProcess::new(Device::open()?, Unread, harness)?, program)
            }
            "read" => {
                executor(10_000, InProcess::new(Device::open()?, observer, harness)?, program)
            }
            _ => fuzzer(100_000, Fuzz::new(), || harness(program)),
        };
    }
    // SAFETY: the process has only one thread.
    let mut fork = unsafe { Fork::new() };
    let builder = Device::builder();
    match part {
        "calls" => rate(500, || Ok(_ = fork.spawn(LIMIT, || _ = harness(program))?)),
        "traced" => {
            executor(500, Forked::new(fork, builder, LIMIT, Unread, harness)?.served()?, program)
        }
        "read" => {
            executor(500, Forked::new(fork, builder, LIMIT, observer, harness)?.served()?, program)
        }
        _ => fuzzer(5_000, Fuzz::new().forked(fork, LIMIT), || harness(program)),
    }
}

/// Measures in another process.
fn remotely(way: &str, part: &str) -> Rate {
    let output = Command::new(env::current_exe()?).args([way, part]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let last = text.lines().last().ok_or("no rate")?;
    Ok(last.parse()?)
}

fn main() -> std::result::Result<(), Box<dyn Error>> {
    let calls = calls();
    // Every process has the same program.
    let mut state = NopState::<Program>::new();
    state.rand_mut().set_seed(1);
    let program = loop {
        let program = Generate::new(&calls, 3).generate(&mut state)?;
        if program.len() == 3 {
            break program;
        }
    };
    if let [_, way, part] = &env::args().collect::<Vec<_>>()[..] {
        println!("{}", measure(way, part, &calls, &program)?);
        return Ok(());
    }
    print!("{}", calls.text(&program));
    println!("           programs per second                 microseconds per program");
    println!("             calls  traced    read  fuzzer     calls tracing reading  LibAFL");
    for way in WAYS {
        let mut best = [0.0_f64; PARTS.len()];
        for _ in 0..ROUNDS {
            for (part, best) in PARTS.iter().zip(&mut best) {
                *best = best.max(remotely(way, part)?);
            }
        }
        print!("{way:10}");
        best.iter().for_each(|rate| print!("{rate:8.0}"));
        print!("  ");
        let mut before = 0.0;
        for rate in best {
            let time = 1e6 / rate;
            print!("{:8.1}", time - before);
            before = time;
        }
        println!();
    }
    Ok(())
}
