//! The guest's half of `kcov-vm fuzz`, for programs that fuzz the guest's kernel.
//!
//! The host keeps the corpus and the crashes. A fuzzer opens its [`Link`], starts from
//! [`corpus`](Link::corpus), and calls [`run`](Link::run) before each execution. So the host knows
//! the input that killed the guest, or that the kernel complained of, and the input that it was made
//! from. No other process may write lines in the form of [`Line`].
//!
//! ```no_run
//! # fn execute(_: &[u8]) -> bool { true }
//! # fn mutate(_: &[u8]) -> Vec<u8> { Vec::new() }
//! use kcov_vm_guest::fuzz::{Link, Progress, name};
//! use std::time::Instant;
//!
//! # fn main() -> std::io::Result<()> {
//! let mut link = Link::open()?.expect("this program runs under `kcov-vm fuzz`");
//! if let Some(inputs) = link.replay()? {
//!     for input in inputs {
//!         link.run(&input, None);
//!         execute(&input);
//!     }
//!     return Ok(());
//! }
//! link.resting()?.iter().for_each(|input| _ = execute(input));
//! let mut corpus = link.corpus()?;
//! let (start, mut executions) = (Instant::now(), 0);
//! while start.elapsed() < link.time() {
//!     let parent = &corpus[executions as usize % corpus.len()];
//!     let input = mutate(parent);
//!     link.run(&input, Some(name(parent)));
//!     if execute(&input) {
//!         link.found(&input)?;
//!         corpus.push(input);
//!     }
//!     executions += 1;
//!     // About once a second: a guest that is silent for long counts as hung.
//!     link.progress(&Progress { executions, signals: 0 })?;
//! }
//! # Ok(())
//! # }
//! ```

pub mod slot;

use serde::{Deserialize, Serialize};
use slot::Slot;
use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use std::{env, fmt, fs, thread};

/// The directory of the inputs to start from.
pub const CORPUS: &str = "/fuzz/corpus";
/// The directory of the inputs that the fuzzer runs but does not mutate.
pub const RESTING: &str = "/fuzz/resting";
/// The directory of the inputs to replay. It exists only in a replay.
pub const REPLAY: &str = "/fuzz/replay";
/// The variable with the slot's mark, in hexadecimal.
pub const MARK: &str = "KCOV_VM_FUZZ_MARK";
/// The variable with the seed for random choices.
pub const SEED: &str = "KCOV_VM_FUZZ_SEED";
/// The variable with the number of seconds to fuzz.
pub const SECONDS: &str = "KCOV_VM_FUZZ_SECONDS";

/// The time that output takes to the host.
const PASSING: Duration = Duration::from_millis(300);
/// The time in which the host ends a guest whose kernel has complained.
const ENDING: Duration = Duration::from_secs(4);

/// A fuzzer's link to the host.
///
/// Its methods fail if a file of inputs cannot be read, or if standard output cannot be written to.
#[derive(Debug)]
pub struct Link {
    slot: Slot,
    /// The kernel's log, from the beginning of the link.
    log: Option<File>,
    seed: u64,
    time: Duration,
}

impl Link {
    /// Opens the link. Returns `None` if the program does not run under `kcov-vm fuzz`.
    ///
    /// # Errors
    ///
    /// Fails if a variable has no value of its kind, or if there is no memory.
    pub fn open() -> io::Result<Option<Link>> {
        let Some(mark) = env::var_os(MARK) else { return Ok(None) };
        let bad = |name: &str| io::Error::other(format!("{name}: not what kcov-vm sets"));
        let mark = mark.to_str().and_then(|mark| u128::from_str_radix(mark, 16).ok());
        let slot = Slot::new(mark.ok_or_else(|| bad(MARK))?.to_be_bytes())?;
        let number = |name| env::var(name).ok().and_then(|text| text.parse().ok());
        let seed = number(SEED).ok_or_else(|| bad(SEED))?;
        let time = Duration::from_secs(number(SECONDS).ok_or_else(|| bad(SECONDS))?);
        Ok(Some(Link { slot, log: log().ok(), seed, time }))
    }

    /// The seed for random choices. Guests that run at the same time have different seeds.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// How long to fuzz. Then exit with status 0; the next guest starts from all guests' corpus.
    #[must_use]
    pub fn time(&self) -> Duration {
        self.time
    }

    /// The inputs to start from, in a fixed order.
    pub fn corpus(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(inputs(Path::new(CORPUS))?.unwrap_or_default())
    }

    /// Inputs whose mutants have killed guests. Run them before the corpus, so that the coverage they
    /// reach does not count as new, but do not mutate them: this leaves time for other inputs.
    pub fn resting(&self) -> io::Result<Vec<Vec<u8>>> {
        Ok(inputs(Path::new(RESTING))?.unwrap_or_default())
    }

    /// In a replay, returns its inputs. Run each of them twice, in order, and exit with status 0.
    pub fn replay(&self) -> io::Result<Option<Vec<Vec<u8>>>> {
        inputs(Path::new(REPLAY))
    }

    /// Keeps an input for the host in case that the guest dies: one copy, and one system call that
    /// looks at the kernel's log. `parent` is the [`name`] of the input of the corpus that it was
    /// made from, if there is one.
    ///
    /// If the kernel complained of the input before, waits for the host to end the guest, so that
    /// input is the last one.
    pub fn run(&mut self, input: &[u8], parent: Option<u64>) {
        while self.log.as_mut().and_then(|log| is_report(log).ok()).unwrap_or(false) {
            thread::sleep(ENDING);
        }
        self.slot.store(input, parent);
    }

    /// Adds an input to the corpus on the host.
    pub fn found(&self, input: &[u8]) -> io::Result<()> {
        send(&Line::Found(input.to_vec()))
    }

    /// Replaces an input in the host's corpus, given its [`name`], with a smaller one. The smaller
    /// input must reach the same code.
    pub fn replaced(&self, name: u64, smaller: &[u8]) -> io::Result<()> {
        send(&Line::Replaced(name, smaller.to_vec()))
    }

    /// Tells the host of an input that the fuzzer itself finds a crash, though the guest survived.
    pub fn crashed(&self, input: &[u8]) -> io::Result<()> {
        send(&Line::Crashed(input.to_vec()))
    }

    /// Tells the host of program counters that were not reached before, as the kernel records them.
    pub fn reached(&self, pcs: &[u64]) -> io::Result<()> {
        if pcs.is_empty() { Ok(()) } else { send(&Line::Reached(pcs.to_vec())) }
    }

    /// In a replay of one input, before it runs: tells the host what the input is, for people, and
    /// smaller versions of it to try, the smallest first. If there are none, the host removes bytes.
    pub fn about(
        &self,
        text: Option<String>,
        smaller: impl IntoIterator<Item = Vec<u8>>,
    ) -> io::Result<()> {
        text.map_or(Ok(()), |text| send(&Line::Text(text)))?;
        smaller.into_iter().try_for_each(|input| send(&Line::Smaller(input)))?;
        // Output passes through init. If the kernel dies before init has passed it on, it is lost.
        thread::sleep(PASSING);
        Ok(())
    }

    /// Reports progress.
    pub fn progress(&self, progress: &Progress) -> io::Result<()> {
        send(&Line::Progress(*progress))
    }
}

/// Opens the end of the kernel's log. Linux only.
fn log() -> io::Result<File> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let mut log = File::options().read(true).custom_flags(flags).open("/dev/kmsg")?;
    log.seek(SeekFrom::End(0))?;
    Ok(log)
}

/// Reads the new lines of the kernel's log up to a stack trace, which every report has. The error is
/// that there is no more.
fn is_report(log: &mut File) -> io::Result<bool> {
    let mut record = [0; 8192];
    loop {
        // Each read returns one record of at most 8 KiB: numbers, a semicolon, the line.
        let length = log.read(&mut record)?;
        if length == 0 {
            return Ok(false);
        }
        let record = String::from_utf8_lossy(&record[..length]);
        let Some((numbers, line)) = record.split_once(';') else { continue };
        // User space has another facility.
        let level = numbers.split(',').next().and_then(|level| level.parse::<u32>().ok());
        if level.is_some_and(|level| level < 8) && line.to_lowercase().starts_with("call trace:") {
            return Ok(true);
        }
    }
}

/// A short name for an input, never 0: 64 bits of FNV-1a.
#[must_use]
pub fn name(input: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    input.iter().fold(0xcbf2_9ce4_8422_2325, add).max(1)
}

fn send(line: &Line) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}

/// The files of a directory, if it exists.
fn inputs(directory: &Path) -> io::Result<Option<Vec<Vec<u8>>>> {
    let entries = match fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        entries => entries?,
    };
    let paths = entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>();
    let mut paths = paths?;
    paths.sort();
    paths.iter().map(fs::read).collect::<io::Result<Vec<_>>>().map(Some)
}

/// The beginning of each line.
const BEGIN: &str = "@kcov-vm-fuzz ";

/// The state of a fuzzer.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub struct Progress {
    /// How often it ran an input.
    pub executions: u64,
    /// The number of program counters, edges or the like that it has reached.
    pub signals: u64,
}

/// A line for the host.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, Serialize)]
pub enum Line {
    /// An input for the corpus.
    Found(Vec<u8>),
    /// A smaller version of an input that was found, and the [`name`] of that input.
    Replaced(u64, Vec<u8>),
    /// An input that the fuzzer finds a crash.
    Crashed(Vec<u8>),
    /// The state of the fuzzer.
    Progress(Progress),
    /// Program counters that the fuzzer has reached, as the kernel records them.
    Reached(Vec<u64>),
    /// A smaller version of the input that a replay runs.
    Smaller(Vec<u8>),
    /// The input that a replay runs, for people.
    Text(String),
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let json = serde_json::to_string(self).map_err(|_| fmt::Error)?;
        write!(f, "{BEGIN}{json}")
    }
}

impl Line {
    /// Parses a line without its line feed. Returns `None` if it has another form.
    #[must_use]
    pub fn parse(text: &str) -> Option<Line> {
        serde_json::from_str(text.strip_prefix(BEGIN)?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_survive() {
        for line in [
            Line::Found((0..=255).collect()),
            Line::Replaced(u64::MAX, Vec::new()),
            Line::Reached(vec![0x6012_f015, u64::MAX]),
            Line::Text("r0 = open()\nclose(r0)\n".into()),
        ] {
            let text = line.to_string();
            assert_eq!(text.lines().count(), 1, "{text}");
            assert_eq!(Line::parse(&text), Some(line));
            assert_eq!(Line::parse(&text[..text.len() - 1]), None);
        }
        assert_eq!(Line::parse("{\"Found\":[]}"), None);
    }
}
