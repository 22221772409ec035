//! Runs a program and counts what it executes in the kernel. Its parent traces it without its help.
use kcov::{Device, mode::TracePc};
use std::collections::HashSet;
use std::io::ErrorKind::WouldBlock;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::{Arc, Mutex};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut words = std::env::args_os().skip(1);
    let mut command = Command::new(words.next().ok_or("usage: exec PROGRAM [ARGUMENT...]")?);
    command.args(words);

    let buffer = Arc::new(Mutex::new(Device::open()?.into_child_buffer(TracePc)?));
    let in_child = Arc::clone(&buffer);
    let enable = move || {
        // Nobody has the lock, so this does not wait.
        let mut buffer = in_child.try_lock().map_err(|_| WouldBlock)?;
        // Dropping the session would end it here. The kernel ends it when the program ends.
        std::mem::forget(buffer.enable()?);
        Ok(())
    };
    // SAFETY: the closure allocates nothing and waits for nothing, so it may run after a fork.
    unsafe { command.pre_exec(enable) };
    // If `enable` fails, or there is no such program, the child ends and `spawn` returns the errno.
    let status = command.spawn()?.wait()?;

    let buffer = buffer.lock().map_err(|_| "a panic")?;
    let trace = buffer.trace()?;
    let pcs: HashSet<_> = trace.iter().collect();
    println!("{status}: {} records, {} PCs, {:?}", trace.len(), pcs.len(), trace.completeness());
    Ok(())
}
