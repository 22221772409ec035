//! A whole program, which is traced from before its execution until it ends.

use super::bursts::best;
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{BufferSize, ChildBuffer, Device};
use std::error::Error;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Instant;

type Shared<M> = Arc<Mutex<ChildBuffer<M>>>;

pub fn print(rounds: u32, program: &[String]) -> Result<(), Box<dyn Error>> {
    let (of_pcs, of_cmps) = (open(TracePc)?, open(TraceCmp)?);
    let [alone, pc, cmp] = best(
        rounds,
        [&mut |_| run::<TracePc>(program, None), &mut |_| run(program, Some(&of_pcs)), &mut |_| {
            run(program, Some(&of_cmps))
        }],
    );
    println!("| program | ns | PC mode | PCs | comparison mode | comparisons |");
    println!("|---|---|---|---|---|---|");
    let (pcs, cmps) = (records(&of_pcs)?, records(&of_cmps)?);
    let (pc, cmp) = (pc / alone, cmp / alone);
    println!("| `{}` | {alone:.0} | {pc:.3} | {pcs} | {cmp:.3} | {cmps} |", program.join(" "));
    Ok(())
}

fn open<M: Mode>(mode: M) -> Result<Shared<M>, kcov::Error> {
    // SAFETY: the children do not touch the buffer.
    let builder = unsafe { Device::builder().not_inherited() };
    let device = builder.size(BufferSize::words(4 << 20)).open()?;
    Ok(Arc::new(Mutex::new(device.into_child_buffer(mode)?)))
}

fn records<M: Mode>(buffer: &Shared<M>) -> Result<String, Box<dyn Error>> {
    let buffer = buffer.lock().map_err(|_| "a panic")?;
    let trace = buffer.trace()?;
    let all = if trace.is_truncated() { "at least " } else { "" };
    Ok(format!("{all}{}", trace.len()))
}

/// The nanoseconds of a program.
fn run<M: Mode>(program: &[String], buffer: Option<&Shared<M>>) -> f64 {
    let buffer = buffer.cloned();
    let mut command = Command::new(&program[0]);
    command.args(&program[1..]).stdin(Stdio::null()).stdout(Stdio::null());
    let enable = move || {
        if let Some(buffer) = &buffer {
            let mut buffer = buffer.try_lock().map_err(|_| ErrorKind::WouldBlock)?;
            std::mem::forget(buffer.enable()?);
        }
        Ok(())
    };
    // SAFETY: the closure allocates nothing and waits for nothing, so it may run after a fork.
    unsafe { command.pre_exec(enable) };
    let start = Instant::now();
    let status = command.status().expect("the program starts");
    assert!(status.success(), "{status}");
    start.elapsed().as_nanos() as f64
}
