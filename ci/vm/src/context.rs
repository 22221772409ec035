//! What the commands share: the cache, the targets and sessions on them.

use crate::cache::Cache;
use crate::cli::{BuildOptions, General, GuestOptions, VmOptions};
use crate::error::{Error, Result};
use crate::home::Home;
use crate::kernel::Kernel;
use crate::netbsd::Libraries;
use crate::programs::Programs;
use crate::session::{Choices, Session};
use crate::source::Source;
use crate::system::System;
use crate::target::{Kind, Target, Targets};
use std::path::PathBuf;
use std::time::Duration;

/// The variables with the user's kernel and libraries for netbsd targets.
const VARIABLES: [&str; 2] = ["KCOV_VM_NETBSD_KERNEL", "KCOV_VM_NETBSD_SYSROOT"];

/// The state of every command.
#[derive(Debug)]
pub struct Context<'a> {
    /// The options of all commands.
    pub general: &'a General,
    /// Where the runner's own files come from.
    pub home: &'a Home,
    /// The cache.
    pub cache: Cache,
    /// All targets.
    pub targets: Targets,
}

impl<'a> Context<'a> {
    /// Opens the cache and reads the targets.
    pub fn new(general: &'a General, home: &'a Home) -> Result<Self> {
        let cache = Cache::open(general.cache.as_deref())?;
        let file = match &general.targets {
            Some(file) => file.clone(),
            None => home.targets(&cache)?,
        };
        Ok(Self { general, home, targets: Targets::load(&file)?, cache })
    }

    /// Opens a session with these options.
    pub fn session(&self, build: &BuildOptions, guest: &GuestOptions) -> Result<Session> {
        let own = &guest.own;
        // Not left to clap, because an unused option is an error but an unused variable is not.
        let [kernel, sysroot] = VARIABLES.map(|name| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(|path| (PathBuf::from(path), name))
        });
        let choices = Choices {
            source: build.source.as_deref().map(Source::given).transpose()?,
            settled: false,
            kernel: guest
                .kernel
                .as_deref()
                .map(|file| Kernel::given(file, "--kernel"))
                .transpose()?,
            netbsd_kernel: kernel.map(|(file, by)| Kernel::given(&file, by)).transpose()?,
            release: own.declare_release.clone(),
            limit: guest.time_limit.map(Duration::from_secs),
            grace: Duration::ZERO,
            accel: guest.accel,
        };
        let (cache, mut targets) = (self.cache.clone(), self.targets.clone());
        for path in &build.config {
            targets.configure(path).map_err(|why| Error::usage(format!("--config {why}")))?;
        }
        targets.declare(&own.declare, is_own_kernel(guest, build))?;
        targets.resize(guest.memory, guest.smp);
        let sysroot = own.sysroot.clone().map(|path| (path, "--sysroot")).or(sysroot);
        let netbsd = sysroot.map(|(given, by)| Libraries::given(&given, by, &cache)).transpose()?;
        let programs = Programs::new(self.home, &targets, &cache, netbsd);
        Ok(Session { cache, targets, choices, programs })
    }

    /// Opens a session for a program on one target.
    pub(crate) fn session_on(&self, vm: &VmOptions, name: &str) -> Result<Session> {
        let session = self.session(&vm.build, &vm.guest)?;
        refuse_unused(vm, &[session.targets.named(name)?])?;
        Ok(session)
    }
}

/// Refuses options that would have no effect.
pub fn refuse_unused(vm: &VmOptions, chosen: &[&Target]) -> Result<()> {
    let VmOptions { build, guest } = vm;
    if guest.accel.is_some() && chosen.iter().all(|target| target.kind == Kind::Uml) {
        let why = format!("--accel: works only for QEMU targets, not {}", names(chosen));
        return Err(Error::usage(why));
    }
    let single = |target: &&&Target| target.kind == Kind::Uml && target.smp == 1;
    if let (Some(2..), Some(target)) = (guest.smp, chosen.iter().find(single)) {
        return Err(Error::usage(format!(
            "--smp: the kernel of {} is for one processor; linux-uml-smp has more",
            target.name
        )));
    }
    if !build.config.is_empty() && chosen.iter().all(|target| target.kind == Kind::Netbsd) {
        let why = format!("--config: works only for Linux targets, not {}", names(chosen));
        return Err(Error::usage(why));
    }
    let given = [
        ("--sysroot", guest.own.sysroot.is_some()),
        ("--declare", !guest.own.declare.is_empty() && !is_own_kernel(guest, build)),
    ];
    refuse_unneeded(&given, chosen)
}

/// Refuses options that only netbsd targets need.
pub fn refuse_unneeded(given: &[(&str, bool)], chosen: &[&Target]) -> Result<()> {
    if chosen.iter().any(|target| target.kind.system() == System::NetBsd) {
        return Ok(());
    }
    match given.iter().find(|(_, given)| *given) {
        Some(("--declare", _)) => Err(Error::usage(
            "--declare: works only for your own kernels: add --kernel, --source or --config, or \
             name a netbsd target",
        )),
        Some((option, _)) => Err(Error::usage(format!(
            "{option}: works only for netbsd targets, not {}",
            names(chosen)
        ))),
        None => Ok(()),
    }
}

fn names(targets: &[&Target]) -> String {
    let names: Vec<_> = targets.iter().map(|target| target.name.as_str()).collect();
    names.join(", ")
}

/// Whether the user named the kernel, its source or options of it.
fn is_own_kernel(guest: &GuestOptions, build: &BuildOptions) -> bool {
    guest.kernel.is_some() || build.source.is_some() || !build.config.is_empty()
}
