//! An executor that can be tested without kcov in the kernel: `kcov/tests/executor.rs` tests the
//! same file `executor.rs` with a fake kernel. This program runs it on a real kernel.
use kcov::{ChildBuffer, Device, mode::TracePc};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, fork};
use std::{error::Error, fs};

mod executor;
use executor::Executor;

/// Looks up a path in a child.
fn look_up(path: &str, buffer: &mut ChildBuffer<TracePc>) -> Result<(), Box<dyn Error>> {
    // SAFETY: the process has only one thread, so the child may run any code.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let session = buffer.enable();
            let _ = fs::metadata(path);
            let refused = session.and_then(|session| session.disable().map(drop)).is_err();
            // SAFETY: `_exit` ends the child at once, without running the parent's exit handlers.
            unsafe { nix::libc::_exit(refused.into()) }
        }
        ForkResult::Parent { child } => match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            other => Err(format!("the child was not traced: {other:?}").into()),
        },
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut executor = Executor::new(Device::builder())?;
    for path in ["/", "/proc/self/status", "/dev/null", "/"] {
        println!("{path}: {:?}", executor.run(|buffer| look_up(path, buffer))?);
    }
    Ok(())
}
