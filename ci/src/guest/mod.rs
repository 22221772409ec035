//! Running guests.

mod channel;
mod kvm;
mod machine;
mod memory;
mod netbsd;
mod process;
mod qemu;
mod uml;
mod watch;

pub use kvm::probe as probe_kvm;
pub use machine::{Accel, Machine};
pub use memory::place as memory_place;

pub(crate) use qemu::QEMU;

use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::image::Image;
use crate::system::System;
use kcov_vm_guest::protocol::Exit;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

/// How long the parts of a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// From the start of the guest to the first word of its init.
    pub boot: Duration,
    /// From there to the end of the program.
    pub program: Duration,
}

/// What the kernel has to be.
#[derive(Clone, Debug)]
pub struct Expect {
    /// Whose it is, which says how to read its console.
    pub system: System,
    /// What the release begins with.
    pub release: String,
    /// What the machine is called.
    pub machine: String,
    /// What the release has to contain if we built it.
    pub build: Option<String>,
}

impl Expect {
    /// Says in which way a kernel is another one, if it is.
    fn contradicted_by(&self, release: &str, machine: &str) -> Option<String> {
        let another = |what: String| Some(format!("the kernel is not what was declared: {what}"));
        if !release.starts_with(&self.release) {
            return another(format!(
                "its release `{release}` does not begin with `{}` (--declare-release says what \
                 it has to begin with)",
                self.release
            ));
        }
        if machine != self.machine {
            return another(format!("it calls the machine `{machine}`, not `{}`", self.machine));
        }
        match &self.build {
            Some(build) if !release.contains(build.as_str()) => {
                another(format!("its release `{release}` lacks the mark of its build, `{build}`"))
            }
            _ => None,
        }
    }
}

/// Where a program's output comes from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// Hears what happens while a guest runs.
pub trait Listener {
    /// The program wrote something.
    fn output(&mut self, stream: Stream, bytes: &[u8]);
    /// The program left a file behind: where below the directory that is sent
    /// back, and its permissions.
    fn file(&mut self, _path: &OsStr, _mode: u32) {}
    /// The next bytes of that file.
    fn data(&mut self, _bytes: &[u8]) {}
    /// The kernel came up and said its release.
    fn booted(&mut self, _release: &str) {}
    /// The kernel logged a line.
    fn console(&mut self, _line: &str) {}
}

/// A run that came to its proper end.
#[derive(Clone, Debug)]
pub struct Finished {
    /// The kernel's release.
    pub release: String,
    /// How the program ended; `None` if the job had none.
    pub exit: Option<Exit>,
    /// How long booting took.
    pub boot: Duration,
    /// How long the program took.
    pub program: Duration,
}

impl Finished {
    /// How the program ended, where there was one to run. Without it there is no verdict.
    pub fn ended(&self) -> Result<Exit> {
        let why = "the guest ended without having run the program";
        self.exit.ok_or_else(|| Error::unavailable(Phase::Program, why))
    }
}

/// Boots `machine` with an image, keeping logs in a directory.
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
    let line = process::Line::new().or_unavailable(Phase::Image, "cannot make a pipe")?;
    let command = machine.command(logs, IMAGE, line.number());
    let watch = watch::Watch::new(&image.job.nonce, limits, expect, Instant::now());
    let result = process::run(command, line, watch, logs, listener);
    // It is large, and made again at every run.
    let _ = fs::remove_file(logs.join(IMAGE));
    result.map_err(|failure| failure.logs(logs).into())
}
