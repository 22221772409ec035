//! From a target to a finished run.

use crate::cache::Cache;
use crate::error::{OrUnavailable as _, Phase, Result};
use crate::guest::{self, Accel, Expect, Finished, Limits, Listener, Machine};
use crate::host::{self, Need};
use crate::image::{self, GuestFile};
use crate::kernel::Kernel;
use crate::programs::Programs;
use crate::source::Source;
use crate::target::{Kind, Target, Targets};
use kcov_vm_guest::job::Job;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// What the user chose for all targets.
#[derive(Clone, Debug)]
pub struct Choices {
    /// A source instead of the targets' own.
    pub source: Option<Source>,
    /// Look for newer packages now.
    pub refresh: bool,
    /// A kernel instead of a built one.
    pub kernel: Option<Kernel>,
    /// Instead of the target's `release`.
    pub release: Option<String>,
    /// Jobs for `make`.
    pub jobs: usize,
    /// Instead of the targets' limits.
    pub limit: Option<Duration>,
    /// Instead of finding out.
    pub accel: Option<Accel>,
}

/// Everything that runs have in common.
#[derive(Debug)]
pub struct Session {
    /// Where things are kept.
    pub cache: Cache,
    /// What there is.
    pub targets: Targets,
    /// What the user chose.
    pub choices: Choices,
    /// The guest's programs.
    pub programs: Programs,
}

/// What a guest is to run.
#[derive(Clone, Debug)]
pub struct Task {
    /// The program, as it is found in the guest.
    pub program: GuestFile,
    /// Its arguments.
    pub arguments: Vec<OsString>,
}

/// A target that can be booted.
#[derive(Clone, Debug)]
pub struct Ready<'a> {
    machine: Machine<'a>,
    expect: Expect,
    limits: Limits,
    /// Where the kernel comes from.
    pub kernel: String,
    /// What executes it, and why.
    pub accelerator: String,
    /// Where logs will be.
    pub logs: PathBuf,
    /// How long getting ready took.
    pub took: Duration,
}

impl Session {
    /// The target's kernel, built if need be.
    pub fn kernel(&self, target: &Target) -> Result<Kernel> {
        if let Some(kernel) = &self.choices.kernel {
            return Ok(kernel.clone());
        }
        let source = match &self.choices.source {
            Some(source) => source.clone(),
            None => Source::of(target, &self.cache, self.choices.refresh)?,
        };
        Kernel::built(target, &source, &self.targets.base, &self.cache, self.choices.jobs)
    }

    /// Gets all that booting the target needs.
    pub fn prepare<'a>(&self, target: &'a Target) -> Result<Ready<'a>> {
        let started = Instant::now();
        if target.kind == Kind::Qemu {
            host::require(Need::Qemu)?;
        }
        let kernel = self.kernel(target)?;
        kernel.check(target.kind)?;
        let limits = Limits {
            boot: self.choices.limit.unwrap_or(target.boot_limit()),
            program: self.choices.limit.unwrap_or(target.program_limit()),
        };
        let release = self.choices.release.as_ref().unwrap_or(&target.release);
        let expect = Expect {
            release: release.clone(),
            machine: target.machine.clone(),
            build: kernel.mark.clone(),
        };
        let logs = image::log_directory(&self.cache.runs(), &target.name)?;
        let accel = self.choices.accel.unwrap_or(Accel::Tcg);
        let mut machine = Machine { target, kernel: kernel.file, accel };
        let mut accelerator = machine.accelerator().to_string();
        if target.kind == Kind::Qemu && self.choices.accel.is_none() {
            let init = self.init()?;
            let memory = self.cache.kvm_probe();
            match guest::probe_kvm(&machine, &init, &expect, &memory, &logs)? {
                Ok(()) => {
                    machine.accel = Accel::Kvm;
                    accelerator = machine.accelerator().to_string();
                }
                Err(why) => accelerator = format!("TCG (KVM probe failed: {why})"),
            }
        }
        let took = started.elapsed();
        Ok(Ready { machine, expect, limits, kernel: kernel.origin, accelerator, logs, took })
    }

    /// Boots the target and runs the task in it.
    pub fn run(
        &self,
        ready: &Ready<'_>,
        task: Task,
        listener: &mut dyn Listener,
    ) -> Result<Finished> {
        let init = self.init()?;
        let target = ready.machine.target;
        let mut argv = vec![OsString::from(&task.program.path)];
        argv.extend(task.arguments);
        let job = Job {
            nonce: image::nonce(),
            channel: ready.machine.channel().into(),
            shutdown: ready.machine.shutdown(),
            mounts: image::mounts(),
            sysctl: target
                .sysctl
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            cwd: "/tmp".into(),
            env: image::environment(),
            argv,
        };
        let initramfs = image::initramfs(&init, &[task.program], &job);
        guest::boot(
            &ready.machine,
            &job,
            &initramfs,
            ready.limits,
            &ready.expect,
            &ready.logs,
            listener,
        )
    }

    fn init(&self) -> Result<Vec<u8>> {
        let path = self.programs.init()?;
        fs::read(path).or_unavailable(Phase::Image, path.display())
    }
}

impl Task {
    /// A program of the host, in the guest's `/bin` under the same name.
    pub fn new(file: &Path, arguments: Vec<OsString>) -> std::result::Result<Self, String> {
        let content = image::program(file)?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let program = GuestFile { path: format!("/bin/{name}"), mode: 0o755, content };
        Ok(Self { program, arguments })
    }
}
