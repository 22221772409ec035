//! An executor that is tested without a kernel that has kcov: `kcov/tests/executor.rs` tests the same
//! file `executor.rs` with a fake kernel. Here it runs on a real one.
use kcov::{ChildBuffer, Device, Error, mode::TracePc};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use std::fs;

mod executor;
use executor::Executor;

/// Looks up a path in a child. A child that cannot enable has nothing in its trace.
fn look_up(path: &str, buffer: &mut ChildBuffer<TracePc>) -> Result<(), Error> {
    // SAFETY: the process has one thread, so the child may do whatever its parent may.
    match unsafe { fork() }.expect("memory for a process") {
        ForkResult::Child => {
            let session = buffer.enable();
            let _ = fs::metadata(path);
            drop(session);
            // SAFETY: ends the process; what the parent has to do at its end is not the child's.
            unsafe { nix::libc::_exit(0) }
        }
        ForkResult::Parent { child } => waitpid(child, None).expect("the child's end"),
    };
    Ok(())
}

fn main() -> Result<(), Error> {
    let mut executor = Executor::new(Device::builder())?;
    for path in ["/", "/proc/self/status", "/dev/null", "/"] {
        println!("{path}: {:?}", executor.run(|buffer| look_up(path, buffer))?);
    }
    Ok(())
}
