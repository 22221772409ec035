//! Reports what this machine's kcov supports, and how to get the rest. Fails if it cannot trace
//! program counters.
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::remote::linux::Remote;
use kcov::{BufferSize, Device, Error, Modes};
use std::process::ExitCode;

fn main() -> ExitCode {
    let modes = match Modes::probe() {
        Ok(modes) => modes,
        Err(error) => {
            println!("kcov: {error}");
            return ExitCode::FAILURE;
        }
    };
    println!("kcov: {modes}");
    tell("program counters", try_mode(TracePc));
    tell("comparisons", try_mode(TraceCmp));
    tell("work in the background, by handles", try_remote());
    if modes.contains(TracePc) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Prints a result. An error says what to do.
fn tell(what: &str, tried: Result<(), Error>) {
    match tried {
        Ok(()) => println!("  {what}: yes"),
        Err(error) => println!("  {what}: no: {error}"),
    }
}

fn open() -> Result<Device, Error> {
    Device::builder().size(BufferSize::words(1)).open()
}

fn try_mode(mode: impl Mode) -> Result<(), Error> {
    open()?.enable(mode)?.disable().map(drop)
}

fn try_remote() -> Result<(), Error> {
    open()?.enable_remote(TracePc, &Remote::new().any_common())?.disable().map(drop)
}
