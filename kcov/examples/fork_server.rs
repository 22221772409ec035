//! Runs each input in a child of its own and reads the child's coverage in the parent: the device
//! is opened, sized and mapped once.
use kcov::{Device, mode::TracePc};
use nix::sys::wait::waitpid;
use nix::unistd::{ForkResult, fork};
use std::collections::BTreeSet;
use std::fs;
use std::process::exit;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut device = Device::open()?;
    let mut server = device.fork_server(TracePc);
    let mut seen = BTreeSet::new();
    for input in ["/", "/proc/self/status", "/dev/null", "/"] {
        server.reset();
        // SAFETY: the process has one thread.
        match unsafe { fork() }? {
            ForkResult::Child => {
                let session = server.enable();
                let _ = fs::metadata(input);
                exit(session.and_then(kcov::Session::disable).is_err().into());
            }
            ForkResult::Parent { child } => waitpid(child, None)?,
        };
        let trace = server.trace();
        let before = seen.len();
        seen.extend(&trace);
        println!("{input}: {} PCs, {} new", trace.len(), seen.len() - before);
    }
    Ok(())
}
