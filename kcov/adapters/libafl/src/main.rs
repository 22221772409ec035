//! A fuzzer of a few system calls with LibAFL and kcov.
//!
//! In a guest, from this directory (`ci/vm/README.md` has what the machine needs):
//!
//! ```sh
//! RUSTFLAGS='-C target-feature=+crt-static' cargo build --release --target x86_64-unknown-linux-gnu
//! cd ../../.. && cargo vm exec linux-uml -- \
//!     kcov/adapters/libafl/target/x86_64-unknown-linux-gnu/release/kcov-libafl 2000
//! ```
//!
//! `kcov-libafl --model [INPUTS]` tries the adapter without kcov: a model makes the traces instead
//! of a kernel.

mod calls;
mod executor;
mod model;

use executor::{KcovExecutor, Kernel, Target, observer};
use kcov::{BufferSize, Device, mode::TracePc};
use libafl::corpus::{Corpus, InMemoryCorpus};
use libafl::events::SimpleEventManager;
use libafl::feedbacks::{ConstFeedback, MaxMapFeedback};
use libafl::fuzzer::{Evaluator, Fuzzer, StdFuzzer};
use libafl::inputs::BytesInput;
use libafl::monitors::NopMonitor;
use libafl::mutators::{HavocScheduledMutator, havoc_mutations};
use libafl::schedulers::QueueScheduler;
use libafl::stages::StdMutationalStage;
use libafl::state::{HasCorpus, HasExecutions, StdState};
use libafl_bolts::rands::StdRand;
use libafl_bolts::tuples::tuple_list;
use std::error::Error;
use std::process::ExitCode;

/// Size of the observer's map in bytes. It need not be a power of two.
const MAP: usize = 1 << 16;

fn main() -> ExitCode {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let model = args.first().is_some_and(|arg| arg == "--model");
    if model {
        args.remove(0);
    }
    let inputs = args.first().map_or(Ok(1000), |arg| arg.parse());
    let Ok(inputs) = inputs else {
        eprintln!("usage: kcov-libafl [--model] [INPUTS]");
        return ExitCode::from(2);
    };
    match if model { fuzz(model::Model, inputs) } else { fuzz_kernel(inputs) } {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("kcov-libafl: {why}");
            ExitCode::FAILURE
        }
    }
}

fn fuzz_kernel(inputs: u64) -> Result<(), Box<dyn Error>> {
    let device = Device::builder().size(BufferSize::words(1 << 18)).open()?;
    let session = device.into_session(TracePc)?;
    fuzz(Kernel { session, calls: calls::run }, inputs)
}

/// Runs mutations of one input, this many in total. Fails if none of them reached more than the
/// first.
fn fuzz(target: impl Target, inputs: u64) -> Result<(), Box<dyn Error>> {
    let observer = observer(MAP);
    let mut feedback = MaxMapFeedback::new(&observer);
    let mut objective = ConstFeedback::new(false);
    let mut state = StdState::new(
        StdRand::with_seed(1),
        InMemoryCorpus::<BytesInput>::new(),
        InMemoryCorpus::new(),
        &mut feedback,
        &mut objective,
    )?;
    let mut manager = SimpleEventManager::new(NopMonitor::new());
    let mut fuzzer = StdFuzzer::new(QueueScheduler::new(), feedback, objective);
    let mut executor = KcovExecutor::new(target, observer);
    let mut stages =
        tuple_list!(StdMutationalStage::new(HavocScheduledMutator::new(havoc_mutations())));

    let first = BytesInput::new(vec![0]);
    fuzzer.evaluate_input(&mut state, &mut executor, &mut manager, &first)?;
    let start = state.corpus().count();
    while *state.executions() < inputs {
        fuzzer.fuzz_one(&mut stages, &mut executor, &mut state, &mut manager)?;
    }
    let corpus = state.corpus().count();
    println!("{} inputs run, {corpus} reached something new", state.executions());
    if start != 1 || corpus <= start {
        return Err("no input was interesting: nothing was recorded, or always the same".into());
    }
    Ok(())
}
