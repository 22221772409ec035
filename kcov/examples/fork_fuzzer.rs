//! Fuzzes a few system calls, each case in its own child. The fuzzer is a struct without lifetimes
//! that owns its device. It survives children that die and code that closes the device's descriptor,
//! and collects comparisons in between.
use kcov::mode::{Mode, TraceCmp, TracePc};
use kcov::{ChildBuffer, Device, Pc};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, close, fork};
use std::collections::{BTreeSet, HashSet};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::mem;
use std::os::unix::net::UnixStream;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

const PATHS: [&str; 5] = ["/", "/proc/self/status", "/dev/null", "/proc", "/none"];

/// The code under test: two bytes of input make one call.
fn calls(input: &[u8]) {
    for call in input.chunks_exact(2) {
        let path = PATHS[usize::from(call[1]) % PATHS.len()];
        match call[0] % 6 {
            0 => drop(fs::metadata(path)),
            1 => drop(File::open(path).and_then(|mut file| file.read(&mut [0; 64]))),
            2 => drop(fs::read_dir(path).map(Iterator::count)),
            3 => drop(UnixStream::pair().and_then(|(mut one, _other)| one.write(call))),
            4 => std::process::abort(),
            // SAFETY: `_exit` ends the process at once, without running other code of it.
            _ => unsafe { nix::libc::_exit(call[1].into()) },
        }
    }
}

struct Fuzzer {
    buffer: ChildBuffer<TracePc>,
    seen: HashSet<Pc>,
    corpus: Vec<Vec<u8>>,
    constants: BTreeSet<u64>,
    random: u64,
    killed: usize,
}

impl Fuzzer {
    fn new() -> Result<Fuzzer> {
        let (seen, constants) = (HashSet::new(), BTreeSet::new());
        let (buffer, corpus) = (open()?, vec![vec![0; 4]]);
        Ok(Fuzzer { buffer, seen, corpus, constants, random: 1, killed: 0 })
    }

    /// Returns a pseudorandom number below `limit`.
    fn random(&mut self, limit: usize) -> usize {
        self.random =
            self.random.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.random >> 33) as usize % limit
    }

    /// Changes one byte of a corpus input, sometimes to a constant from the kernel.
    fn mutate(&mut self) -> Vec<u8> {
        let chosen = self.random(self.corpus.len());
        let mut input = self.corpus[chosen].clone();
        let (place, byte) = (self.random(input.len()), self.random(256));
        let constant = self.constants.iter().nth(byte);
        input[place] = constant.map_or(byte, |constant| *constant as usize) as u8;
        input
    }

    /// Runs an input, and keeps it if it reaches new PCs.
    fn run(&mut self, input: &[u8]) -> Result<bool> {
        let Some(killed) = in_child(&mut self.buffer, input)? else {
            // The descriptor may be another file's by now, so it is not even closed.
            mem::replace(&mut self.buffer, open()?).into_device().abandon();
            return Ok(false);
        };
        self.killed += usize::from(killed);
        let before = self.seen.len();
        self.seen.extend(self.buffer.trace()?.iter());
        let new = self.seen.len() > before;
        if new {
            self.corpus.push(input.to_vec());
        }
        Ok(new)
    }

    /// Runs an input again to learn the constants that the kernel compares with.
    fn learn(mut self, input: &[u8]) -> Result<Fuzzer> {
        let mut buffer = self.buffer.into_device().into_child_buffer(TraceCmp)?;
        in_child(&mut buffer, input)?;
        let constants = buffer.trace()?.iter().filter(|comparison| comparison.is_const());
        self.constants.extend(constants.map(|comparison| comparison.operands().0));
        Ok(Fuzzer { buffer: buffer.into_device().into_child_buffer(TracePc)?, ..self })
    }
}

/// Opens the device with a high descriptor number, away from those that the cases open.
fn open() -> Result<ChildBuffer<TracePc>> {
    Ok(Device::builder().min_fd(200).open()?.into_child_buffer(TracePc)?)
}

/// Runs an input in a child and waits for it. Returns whether a signal killed it, or `None` if it
/// was not traced.
fn in_child<M: Mode>(buffer: &mut ChildBuffer<M>, input: &[u8]) -> Result<Option<bool>> {
    buffer.reset();
    // SAFETY: the process has only one thread, so the child may run any code.
    match unsafe { fork() }? {
        ForkResult::Child => {
            if let Ok(_session) = buffer.enable() {
                calls(input);
            }
            // SAFETY: `_exit` ends the child at once, without running the parent's exit handlers.
            unsafe { nix::libc::_exit(0) }
        }
        ForkResult::Parent { child } => {
            let killed = matches!(waitpid(child, None)?, WaitStatus::Signaled(..));
            Ok(if buffer.trace()?.is_empty() { None } else { Some(killed) })
        }
    }
}

fn main() -> Result<()> {
    let mut fuzzer = Fuzzer::new()?;
    for case in 1..=300 {
        if case % 100 == 0 {
            // Daemons close all descriptors when they start. The device's is among them.
            (3..1024).for_each(|fd| _ = close(fd));
        }
        let input = fuzzer.mutate();
        if fuzzer.run(&input)? {
            fuzzer = fuzzer.learn(&input)?;
        }
    }
    let Fuzzer { seen, corpus, constants, killed, .. } = fuzzer;
    println!("{} PCs, {} inputs in the corpus", seen.len(), corpus.len());
    println!("{} constants, {killed} children killed", constants.len());
    Ok(())
}
