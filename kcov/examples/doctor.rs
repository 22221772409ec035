//! Says what this machine's kcov can do, and what to do about what it cannot. Fails if it cannot
//! trace program counters.
use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use kcov::remote::linux::{CommonHandle, Remote};
use kcov::{BufferSize, Device, Error, Status};
use std::process::ExitCode;

fn main() -> ExitCode {
    let status = Status::probe();
    println!("kcov: {status}");
    tell("program counters", try_mode(TracePc));
    tell("comparisons", try_mode(TraceCmp));
    tell("work in the background, by handles", try_remote());
    match status {
        Status::Available(modes) if modes.contains(AnyMode::TracePc) => ExitCode::SUCCESS,
        Status::Silent(_) => {
            println!(
                "Build the kernel with CONFIG_KCOV_INSTRUMENT_ALL=y (NetBSD: makeoptions KCOV=1)."
            );
            ExitCode::FAILURE
        }
        _ => ExitCode::FAILURE,
    }
}

/// An error says what to do.
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
    let remote = Remote::new().common(CommonHandle::of_process());
    open()?.enable_remote(TracePc, &remote)?.disable().map(drop)
}
