//! From a target to a finished run.

use crate::cache::Cache;
use crate::error::{OrUnavailable as _, Phase, Result};
use crate::guest::{self, Accel, Expect, Finished, Limits, Listener, Machine};
use crate::host::{self, Need};
use crate::image::{self, GuestFile, Image};
use crate::kernel::Kernel;
use crate::netbsd::{self, Libraries};
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
    /// The same, for NetBSD targets only.
    pub netbsd_kernel: Option<Kernel>,
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
    /// Whether the user gave all that nobody else can.
    pub fn given(&self, target: &Target) -> Result<()> {
        match target.kind {
            Kind::Uml | Kind::Qemu => Ok(()),
            Kind::Netbsd => {
                netbsd::given(self.netbsd_kernel().is_some(), self.programs.netbsd.is_some())
            }
        }
    }

    fn netbsd_kernel(&self) -> Option<&Kernel> {
        self.choices.kernel.as_ref().or(self.choices.netbsd_kernel.as_ref())
    }

    fn release<'a>(&'a self, target: &'a Target) -> &'a str {
        self.choices.release.as_ref().unwrap_or(&target.release)
    }

    /// The target's kernel, built if need be.
    pub fn kernel(&self, target: &Target) -> Result<Kernel> {
        self.given(target)?;
        if let (Kind::Netbsd, Some(kernel)) = (target.kind, self.netbsd_kernel()) {
            netbsd::check_kernel(&kernel.file, self.release(target))?;
            self.programs.netbsd.as_ref().map_or(Ok(()), Libraries::check)?;
            return Ok(kernel.clone());
        }
        if let Some(kernel) = &self.choices.kernel {
            return Ok(kernel.clone());
        }
        let source = match &self.choices.source {
            Some(source) => source.clone(),
            None => Source::of(target, &self.cache, self.choices.refresh)?,
        };
        let Choices { refresh, jobs, .. } = self.choices;
        Kernel::built(target, &source, &self.targets.base, &self.cache, refresh, jobs)
    }

    /// Gets all that booting the target needs.
    pub fn prepare<'a>(&self, target: &'a Target) -> Result<Ready<'a>> {
        let started = Instant::now();
        if target.kind == Kind::Qemu {
            host::require(Need::Qemu)?;
        }
        let kernel = self.kernel(target)?;
        kernel.check(target.kind)?;
        let release = self.release(target);
        let disc = match target.kind {
            Kind::Uml | Kind::Qemu => None,
            Kind::Netbsd => {
                host::require(Need::Netbsd)?;
                netbsd::disc(&kernel.file, release, &self.cache)?
            }
        };
        let limits = Limits {
            boot: self.choices.limit.unwrap_or(target.boot_limit()),
            program: self.choices.limit.unwrap_or(target.program_limit()),
        };
        let expect = Expect {
            system: target.kind.system(),
            release: release.to_string(),
            machine: target.machine.clone(),
            build: kernel.mark.clone(),
        };
        let logs = image::log_directory(&self.cache.runs(), &target.name)?;
        let accel = self.choices.accel.unwrap_or(Accel::Tcg);
        let mut machine = Machine { target, kernel: kernel.file, disc, accel };
        let mut accelerator = machine.accelerator().to_string();
        if target.kind == Kind::Qemu && self.choices.accel.is_none() {
            let init = self.init(target)?;
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
        let target = ready.machine.target;
        let init = self.init(target)?;
        let mut argv = vec![OsString::from(&task.program.path)];
        argv.extend(task.arguments);
        let job = Job {
            nonce: image::nonce(),
            channel: ready.machine.channel().into(),
            shutdown: ready.machine.shutdown(),
            mounts: image::mounts(target.kind.system()),
            sysctl: target
                .sysctl
                .iter()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            cwd: "/tmp".into(),
            env: image::environment(),
            argv,
        };
        let image = Image { init: &init, job: &job, files: &[task.program] };
        guest::boot(&ready.machine, &image, ready.limits, &ready.expect, &ready.logs, listener)
    }

    /// What to run on the target: a program of the host, in the guest's `/bin`
    /// under the same name. The inner error says why it cannot run there.
    pub fn task(
        &self,
        target: &Target,
        file: &Path,
        arguments: Vec<OsString>,
    ) -> std::result::Result<Task, String> {
        let content = image::program(file, target.kind.system()).map_err(|why| {
            let libraries = self.programs.netbsd.as_ref().filter(|_| target.kind == Kind::Netbsd);
            match libraries.filter(|_| file.is_file()).and_then(Libraries::advice) {
                Some(advice) => format!("{why}; {advice}"),
                None => why,
            }
        })?;
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let program = GuestFile { path: format!("/bin/{name}"), mode: 0o755, content };
        Ok(Task { program, arguments })
    }

    fn init(&self, target: &Target) -> Result<Vec<u8>> {
        let path = self.programs.init(target.kind.system())?;
        fs::read(&path).or_unavailable(Phase::Image, path.display())
    }
}
