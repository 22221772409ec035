//! A target's guest: prepares it, boots it and runs a task.

use super::Session;
use crate::cache;
use crate::carry::Carried;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::guest::{self, Expect, Finished, Limits, Listener, Machine};
use crate::host::{self, Need};
use crate::image::{self, Image};
use crate::kernel::Kernel;
use crate::netbsd;
use crate::system::System;
use crate::target::{Accel, Kind, Target};
use kcov_vm_guest::job::Job;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The file with the program's standard input, if that is not empty.
pub const STDIN: &str = "/kcov-vm.stdin";

/// For the kernel of a fuzzer's guest: panic at the end of a report of WARN, KASAN, a lockup or an
/// oops, with which the input ends that runs, and report blocked tasks soon.
const FUZZED: &str = "panic_on_taint=0x42a0 sysctl.kernel.hung_task_timeout_secs=15 \
                      sysctl.kernel.hung_task_check_interval_secs=5";
/// The processor time that a fuzzer's guest may use without output. A fuzzer reports progress every
/// second.
pub const SILENT: Duration = Duration::from_secs(15);
/// The time that it may be without output. The time in which it waits for a processor does not count.
const IDLE: Duration = Duration::from_secs(30);

/// A program to run in a guest.
#[derive(Clone, Debug, Default)]
pub struct Task {
    /// The program's path, in the guest as on the host.
    pub program: PathBuf,
    /// Its own word for itself, if that is not its path.
    pub word: Option<OsString>,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The program and all other files.
    pub carried: Carried,
    /// Environment variables in addition to the default ones; later ones win.
    pub environment: Vec<(OsString, OsString)>,
    /// Its working directory, if not the default.
    pub directory: Option<PathBuf>,
    /// The directory that the guest copies back to the host.
    pub send_back: Option<String>,
    /// Whether its standard output and standard error are the same file.
    pub one_output: bool,
    /// Whether the program runs on the console, with this process's standard input.
    pub terminal: bool,
}

impl Task {
    /// The program's bytes.
    pub fn content(&self) -> Option<&[u8]> {
        self.carried.content(&self.program)
    }

    /// Lets another program run the program: with these arguments, the program's path and its
    /// arguments.
    pub fn run_by(
        &mut self,
        tool: &Path,
        mut words: Vec<OsString>,
    ) -> std::result::Result<(), String> {
        self.carried.add(tool)?;
        words.push(std::mem::replace(&mut self.program, tool.into()).into());
        words.append(&mut self.arguments);
        (self.arguments, self.word) = (words, None);
        Ok(())
    }
}

/// A target that is ready to boot.
#[derive(Clone, Debug)]
pub struct Ready<'a> {
    pub(super) machine: Machine<'a>,
    pub(super) expect: Expect,
    limits: Limits,
    /// The kernel's origin.
    pub kernel: String,
    /// The accelerator, and why it was chosen.
    pub accelerator: String,
    /// The directory for logs.
    pub logs: PathBuf,
    /// The time that the preparation took.
    pub took: Duration,
}

impl<'a> Ready<'a> {
    /// The target.
    pub fn target(&self) -> &'a Target {
        self.machine.target
    }

    /// Replaces the program's time limit.
    pub fn limit(&mut self, program: Duration) {
        self.limits.program = program;
    }

    /// Returns a copy for a fuzzer. Its guest ends at the kernel's first complaint, or after [`SILENT`]
    /// or `IDLE` without output. It has its own log directory, and its memory is a file.
    pub fn beside(&self, logs: PathBuf, program: Duration) -> Result<Ready<'a>> {
        let mut other = self.clone();
        other.machine.words = FUZZED;
        let (boot, silent, idle) = (self.limits.boot, Some(SILENT), Some(IDLE));
        other.limits = Limits { boot, program, silent, idle, ends_at_complaint: true };
        if other.machine.memory.is_none() {
            let (place, _) = guest::memory_place(other.machine.target.memory, &logs)?;
            other.machine.memory = Some(place);
        }
        other.logs = logs;
        Ok(other)
    }

    /// The kernel's file with symbols, if the runner built it.
    pub fn vmlinux(&self) -> PathBuf {
        self.machine.kernel.with_file_name("vmlinux")
    }

    /// Returns a copy with another kernel of the same release, and another log directory.
    pub fn with(&self, kernel: PathBuf, logs: PathBuf, limits: Limits) -> Result<Ready<'a>> {
        let mut other = self.clone();
        if other.machine.disc.is_some() {
            other.machine.disc = Some(netbsd::make_disc(&kernel, &logs)?);
        }
        other.machine.kernel = kernel;
        other.logs = logs;
        other.limits = limits;
        Ok(other)
    }
}

impl Session {
    /// Prepares everything for booting the target.
    pub fn prepare<'a>(&self, target: &'a Target) -> Result<Ready<'a>> {
        let started = Instant::now();
        if target.kind == Kind::Qemu {
            // Before minutes of building.
            host::require(Need::Qemu(target.arch.qemu))?;
        }
        let kernel = self.kernel(target)?;
        let ready = self.prepare_with(target, kernel)?;
        Ok(Ready { took: started.elapsed(), ..ready })
    }

    /// Prepares to boot the target with this kernel.
    pub fn prepare_with<'a>(&self, target: &'a Target, kernel: Kernel) -> Result<Ready<'a>> {
        if let (Some(_), Some(directory)) = (&kernel.mark, kernel.file.parent()) {
            cache::touch(directory);
        }
        let release = self.release(target);
        let disc = match target.kind {
            Kind::Uml => None,
            Kind::Qemu => host::require(Need::Qemu(target.arch.qemu)).map(|()| None)?,
            Kind::Netbsd => {
                host::require(Need::Netbsd)?;
                netbsd::disc(&kernel.file, release, &self.cache)?
            }
        };
        let limits = Limits {
            boot: self.choices.limit.unwrap_or(target.boot_limit()),
            program: self.program_limit(target) + self.choices.grace,
            ..Limits::default()
        };
        let expect = Expect {
            system: target.kind.system(),
            release: release.to_string(),
            machine: target.machine().into(),
            build: kernel.mark.clone(),
        };
        let logs = image::log_directory(&self.cache.at("runs"), &target.name)?;
        let chosen = self.choices.accel;
        let accel = chosen.unwrap_or(Accel::Tcg);
        let place = (target.kind == Kind::Uml)
            .then(|| guest::memory_place(target.memory, &logs))
            .transpose()?;
        let (memory, elsewhere) = place.map_or((None, None), |(place, why)| (Some(place), why));
        let no_filters = (target.kind == Kind::Uml).then(guest::seccomp_refusal).flatten();
        if let (Some(why), true) = (no_filters, target.smp > 1) {
            let message = format!("{why}, and User-Mode Linux needs one for several processors");
            return Err(Error::unavailable(Phase::Boot, message));
        }
        let mut machine = Machine {
            target,
            kernel: kernel.file,
            disc,
            accel,
            memory,
            ptrace: no_filters.is_some(),
            more_memory: 0,
            input: false,
            words: "",
        };
        let mut accelerator = machine.accelerator().to_string();
        if let (Some(directory), Some(why)) = (&machine.memory, elsewhere) {
            accelerator += &format!(" (memory in {}: {why})", directory.display());
        }
        if let Some(why) = no_filters {
            accelerator += &format!(" (ptrace: {why})");
        }
        if target.kind == Kind::Qemu && target.arch.is_host() && chosen.is_none() {
            let init = self.init(target)?;
            let memory = self.cache.root().join("kvm-probe");
            match guest::probe_kvm(&machine, &init, &expect, &memory, &logs)? {
                Ok(()) => {
                    machine.accel = Accel::Kvm;
                    accelerator = machine.accelerator().to_string();
                }
                Err(why) => accelerator = format!("TCG (KVM probe failed: {why})"),
            }
        }
        let took = Duration::ZERO;
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
        let system = target.kind.system();
        let mut argv = vec![OsString::from(&task.program)];
        argv.extend(task.arguments);
        let mut mounts = image::mounts(system);
        // A mount would hide the image's own files. Init keeps those of a mount on another.
        let points: Vec<_> = mounts.iter().map(|mount| PathBuf::from(&mount.target)).collect();
        let point_of = |path: &Path| {
            let around = points.iter().filter(|point| path.starts_with(point));
            around.max_by_key(|point| point.as_os_str().len()).filter(|point| path != *point)
        };
        let hidden: BTreeSet<_> =
            task.carried.entries().filter_map(|(path, _)| point_of(path)).collect();
        mounts.retain(|mount| !hidden.contains(&PathBuf::from(&mount.target)));
        let mut env = image::environment();
        for (name, value) in task.environment {
            env.retain(|(known, _)| *known != name);
            env.push((name, value));
        }
        let job = Job {
            nonce: image::nonce(),
            channel: ready.machine.channel(),
            shutdown: ready.machine.shutdown(),
            mounts,
            send_back: task.send_back,
            stdin: task.carried.content(Path::new(STDIN)).map(|_| STDIN.into()),
            one_output: task.one_output,
            terminal: task.terminal.then(|| ready.machine.terminal()).flatten(),
            cwd: task.directory.unwrap_or_else(|| "/tmp".into()).into(),
            env,
            argv,
            word: task.word,
        };
        let bytes = match system {
            System::Linux => task.carried.memory(),
            // On the disk.
            System::NetBsd => 0,
        };
        let more_memory = u32::try_from(bytes >> 20).unwrap_or(u32::MAX);
        let mut machine = Machine { more_memory, input: task.terminal, ..ready.machine.clone() };
        if let (Some(memory), true) = (&mut machine.memory, more_memory > 0) {
            let mebibytes = target.memory.saturating_add(more_memory);
            (*memory, _) = guest::memory_place(mebibytes, &ready.logs)?;
        }
        let image = Image { init: &init, job: &job, carried: &task.carried };
        guest::boot(&machine, &image, ready.limits, &ready.expect, &ready.logs, listener)
    }

    /// Makes the task for a host program, with variables that its loader may use. The inner error
    /// says why it cannot run there.
    pub fn task(
        &self,
        target: &Target,
        file: &Path,
        arguments: Vec<OsString>,
        environment: Vec<(OsString, OsString)>,
    ) -> std::result::Result<Task, String> {
        let carried = image::program(file, target, environment.clone())?;
        let program = std::path::absolute(file).map_err(|why| why.to_string())?;
        Ok(Task { program, arguments, carried, environment, ..Task::default() })
    }

    /// The program's time limit.
    pub fn program_limit(&self, target: &Target) -> Duration {
        self.choices.limit.unwrap_or(target.program_limit())
    }

    fn init(&self, target: &Target) -> Result<Vec<u8>> {
        let path = self.programs.init(target)?;
        fs::read(&path).or_unavailable(Phase::Image, path.display())
    }
}
