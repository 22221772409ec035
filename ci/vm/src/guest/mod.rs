//! Runs guests.

mod channel;
mod kvm;
mod lockup;
mod machine;
mod memory;
mod process;
mod processor;
mod seccomp;
mod watch;

pub use kvm::probe as probe_kvm;
pub use lockup::report as lockup_report;
pub use machine::Machine;
pub use memory::place as memory_place;
pub use seccomp::refusal as seccomp_refusal;

use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::image::Image;
use crate::system::System;
use crate::target::Kind;
use kcov_vm_guest::protocol::Exit;
pub use processor::make_idle;
use rustix::pipe::{PipeFlags, pipe_with};
use std::ffi::OsStr;
use std::fs;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

/// The time limits of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// From the start of the guest to its init's first message. The time in which the guest waits
    /// for a processor of the host does not count for this limit and the next.
    pub boot: Duration,
    /// From there to the end of the program.
    pub program: Duration,
    /// The processor time that the guest's process may use without output. Like the next limit, it
    /// does not depend on the host's load.
    pub silent: Option<Duration>,
    /// The time that the guest may be without output and does not wait for a processor.
    pub idle: Option<Duration>,
    /// Whether each complaint of the kernel ends the guest, not only a fatal one.
    pub ends_at_complaint: bool,
}

/// The properties that the kernel must have.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Its system, which decides how to read the console.
    pub system: System,
    /// The beginning of the release.
    pub release: String,
    /// The machine's name.
    pub machine: String,
    /// A part of the release that marks our build.
    pub build: Option<String>,
}

impl Expect {
    /// Returns how the kernel contradicts these expectations.
    fn contradicted_by(&self, release: &str, machine: &str) -> Option<String> {
        let another = |what: String| Some(format!("the kernel is not the declared one: {what}"));
        if !release.starts_with(&self.release) {
            return another(format!(
                "its release `{release}` does not begin with `{}` (set another beginning \
                 with --declare-release)",
                self.release
            ));
        }
        if machine != self.machine {
            return another(format!("its machine is `{machine}`, not `{}`", self.machine));
        }
        match &self.build {
            Some(build) if !release.contains(build.as_str()) => {
                another(format!("its release `{release}` lacks `{build}`, the mark of its build"))
            }
            _ => None,
        }
    }
}

/// The stream that a program wrote to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Receives the events of a running guest. `()` ignores them.
pub trait Listener {
    /// The guest's process runs.
    fn started(&mut self, _process: u32) {}
    /// Called while the guest's process runs: at least every 20 ms, unless the host is busy. Returns
    /// whether the guest may go on.
    fn running(&mut self) -> bool {
        true
    }
    /// The program wrote output.
    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}
    /// Whether nobody reads more output. The runner then ends the guest, as SIGPIPE would end the
    /// program.
    fn is_closed(&self) -> bool {
        false
    }
    /// The program left a file, with this path in the directory that is sent back, and these
    /// permissions.
    fn file(&mut self, _path: &OsStr, _mode: u32) {}
    /// The next bytes of that file.
    fn data(&mut self, _bytes: &[u8]) {}
    /// The kernel booted and reported its release.
    fn booted(&mut self, _release: &str) {}
    /// The console received bytes: the kernel's log, or a program's output if the job has a terminal.
    fn terminal(&mut self, _bytes: &[u8]) {}
    /// The kernel logged a line.
    fn console(&mut self, _line: &str) {}
    /// The guest has exceeded [`Limits::silent`]. The runner ends it next.
    fn silent(&mut self) {}
}

impl Listener for () {}

/// A run that ended properly.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The kernel's release.
    pub release: String,
    /// The program's exit; `None` if the job had no program.
    pub exit: Option<Exit>,
    /// The time that booting took.
    pub boot: Duration,
    /// The time that the program took.
    pub program: Duration,
}

impl Finished {
    /// Returns the program's exit. Without one there is no verdict.
    pub fn ended(&self) -> Result<Exit> {
        let why = "the guest ended without running the program";
        self.exit.ok_or_else(|| Error::unavailable(Phase::Program, why))
    }
}

/// Boots `machine` with an image and keeps the logs in a directory.
pub fn boot(
    machine: &Machine<'_>,
    image: &Image<'_>,
    limits: Limits,
    expect: &Expect,
    logs: &Path,
    listener: &mut dyn Listener,
) -> Result<Finished> {
    const IMAGE: &str = "image";
    image.write(machine.target.kind.system(), logs, IMAGE)?;
    let line = pipe_with(PipeFlags::CLOEXEC).or_unavailable(Phase::Image, "cannot make a pipe")?;
    let channel = line.1.as_raw_fd();
    // Standard output is the console.
    let mut command = match machine.target.kind {
        Kind::Uml => machine::uml(machine, IMAGE, channel),
        Kind::Qemu => machine::qemu(machine, IMAGE, channel),
        Kind::Netbsd => machine::netbsd(machine, IMAGE, channel),
    };
    command.current_dir(logs);
    // The UML kernel and its processes alternate, which is several times as fast on one processor.
    let takes_turns = machine.target.kind == Kind::Uml && machine.target.smp == 1;
    if takes_turns {
        processor::pin(&mut command);
    }
    let watch = watch::Watch::new(&image.job.nonce, limits, expect, Instant::now());
    let result = process::run(command, line, watch, logs, listener, machine.input);
    // It is large, and each run makes a new one.
    let _ = fs::remove_file(logs.join(IMAGE));
    result.map_err(|failure| failure.logs(logs).into())
}
