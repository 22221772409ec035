//! Runs the commands.

use crate::cache::Cache;
use crate::cli::{
    AccelChoice, BuildOptions, Cli, Command, General, GuestOptions, MutantsOptions, TestOptions,
    VmOptions,
};
use crate::error::{Error, Result, STATUS_PASSED};
use crate::guest::Accel;
use crate::kernel::{Compiler, Kernel};
use crate::netbsd::Libraries;
pub(crate) use crate::output::print;
use crate::programs::Programs;
use crate::session::{Choices, Session};
use crate::source::{self, LOCK, Source};
use crate::system::System;
use crate::target::{Kind, Target, Targets};
use crate::{clean, drift, env, exec, list, mutants, output, results, tester};
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

/// Runs a command and returns the exit status.
pub fn run(cli: Cli) -> Result<u8> {
    let status = carry_out(cli)?;
    output::lost()?;
    Ok(status)
}

fn carry_out(cli: Cli) -> Result<u8> {
    let Cli { command, general } = cli;
    match command {
        Command::List => {
            let cache = Cache::open(general.cache.as_deref())?;
            print(&list::render(&targets(&general)?, &cache, general.verbose));
            Ok(STATUS_PASSED)
        }
        Command::Build { names, build } => {
            let session = session(&general, &build, None)?;
            let chosen = session.targets.select(&names)?;
            build_all(&session, &chosen)
        }
        Command::Key { name, source } => key(&general, &name, source),
        Command::Lock => {
            let (cache, targets) = (Cache::open(general.cache.as_deref())?, targets(&general)?);
            print(&match source::raise(&targets.base, &targets.wanted(), &cache)? {
                changes if changes.is_empty() => format!("{LOCK}: all versions are the newest\n"),
                changes => changes,
            });
            Ok(STATUS_PASSED)
        }
        Command::Results(options) => results::run(&targets(&general)?.base, &options),
        Command::Clean { dry_run, days } => {
            let cache = Cache::open(general.cache.as_deref())?;
            let age = Duration::from_secs(days.saturating_mul(24 * 60 * 60));
            print(&clean::run(&targets(&general)?, &cache, age, dry_run)?);
            Ok(STATUS_PASSED)
        }
        Command::Test(options) => test(&general, &options),
        Command::Lockstep(options) => test(&general, &options.into_test()),
        Command::Drift { names, source, manual } => {
            let session = session(&general, &BuildOptions::default(), None)?;
            let named = session.targets.select(&names)?;
            let chosen =
                if names.is_empty() { session.targets.all.iter().collect() } else { named };
            refuse_unneeded(
                &[("--source", source.is_some()), ("--manual", manual.is_some())],
                &chosen,
            )?;
            let given = drift::Given::new(source, manual)?;
            drift::run(&session, &chosen, &given, !names.is_empty())
        }
        Command::Mutants(options) => {
            let session = session_of_mutants(&general, &options)?;
            let target = session.targets.named(&options.name)?;
            mutants::run(&session, target, &options)
        }
        Command::Exec(options) => {
            let session = session_on(&general, &options.place.vm, &options.name)?;
            exec::exec(&session, *options, general.verbose)
        }
        Command::Trace(options) => {
            let mut session = session_on(&general, &options.vm, &options.name)?;
            session.choices.grace = exec::TRACE_GRACE;
            exec::trace(&session, *options, general.verbose)
        }
        Command::Env { name, vm } => {
            let session = session_on(&general, &vm, &name)?;
            let target = session.targets.named(&name)?;
            env::run(&session, target)
        }
        Command::Runner(options) => {
            let mut session = session_on(&general, &options.place.vm, &options.name)?;
            session.choices.settled = !options.place.vm.build.refresh;
            exec::runner(&session, *options, general.verbose)
        }
    }
}

/// Refuses options that would have no effect.
fn refuse_unused(vm: &VmOptions, chosen: &[&Target]) -> Result<()> {
    let VmOptions { build, guest } = vm;
    if guest.accel != AccelChoice::Auto && chosen.iter().all(|target| target.kind == Kind::Uml) {
        let why = format!("--accel: works only for QEMU targets, not {}", names(chosen));
        return Err(Error::usage(why));
    }
    let given = [
        ("--abi", guest.own.abi.is_some()),
        ("--sysroot", guest.own.sysroot.is_some()),
        ("--netbsd-kernel", guest.netbsd_kernel.is_some()),
        ("--declare", !guest.own.declare.is_empty() && !is_own_kernel(guest, build)),
    ];
    refuse_unneeded(&given, chosen)
}

fn refuse_unneeded(given: &[(&str, bool)], chosen: &[&Target]) -> Result<()> {
    if chosen.iter().any(|target| target.kind.system() == System::NetBsd) {
        return Ok(());
    }
    match given.iter().find(|(_, given)| *given) {
        Some(("--declare", _)) => Err(Error::usage(
            "--declare: works only for your own kernels: add --kernel or --source, or name a \
             netbsd target",
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

fn is_own_kernel(guest: &GuestOptions, build: &BuildOptions) -> bool {
    guest.kernel.is_some() || build.source.is_some()
}

fn test(general: &General, options: &TestOptions) -> Result<u8> {
    let session = session(general, &options.vm.build, Some(&options.vm.guest))?;
    let chosen = session.targets.select(&options.names)?;
    let chosen = if options.all { session.targets.all.iter().collect() } else { chosen };
    refuse_unused(&options.vm, &chosen)?;
    tester::test(&session, &chosen, options, general.verbose)
}

fn targets(general: &General) -> Result<Targets> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets.toml");
    Targets::load(general.targets.as_deref().unwrap_or(&own))
}

fn session(
    general: &General,
    build: &BuildOptions,
    guest: Option<&GuestOptions>,
) -> Result<Session> {
    let choices = Choices {
        source: build.source.as_deref().map(Source::given).transpose()?,
        refresh: build.refresh,
        settled: false,
        kernel: guest
            .and_then(|g| g.kernel.as_deref())
            .map(|file| Kernel::given(file, "--kernel"))
            .transpose()?,
        netbsd_kernel: guest
            .and_then(|g| {
                or_variable(g.netbsd_kernel.as_deref(), "--netbsd-kernel", "KCOV_VM_NETBSD_KERNEL")
            })
            .map(|(file, by)| Kernel::given(&file, by))
            .transpose()?,
        netbsd_tree: None,
        release: guest.and_then(|g| g.own.declare_release.clone()),
        jobs: build
            .jobs
            .map_or_else(|| available_parallelism().map_or(1, usize::from), |jobs| jobs as usize),
        limit: guest.and_then(|g| g.time_limit).map(Duration::from_secs),
        grace: Duration::ZERO,
        accel: match guest.map(|g| g.accel) {
            Some(AccelChoice::Kvm) => Some(Accel::Kvm),
            Some(AccelChoice::Tcg) => Some(Accel::Tcg),
            Some(AccelChoice::Auto) | None => None,
        },
    };
    let cache = Cache::open(general.cache.as_deref())?;
    let mut targets = targets(general)?;
    let mut programs = Programs::default();
    programs.kept = Some(cache.clone());
    if let Some(guest) = guest {
        let own = &guest.own;
        targets.adjust(own.abi.as_deref(), &own.declare, is_own_kernel(guest, build))?;
        let sysroot = or_variable(own.sysroot.as_deref(), "--sysroot", "KCOV_VM_NETBSD_SYSROOT");
        let libraries = sysroot.map(|(given, by)| Libraries::given(&given, by, &cache));
        programs.netbsd = libraries.transpose()?;
    }
    Ok(Session { cache, targets, choices, programs })
}

/// Opens a session for `mutants`. A netbsd target's source is a tree of NetBSD's.
fn session_of_mutants(general: &General, options: &MutantsOptions) -> Result<Session> {
    let targets = targets(general)?;
    let target = targets.named(&options.name)?;
    let own = &options.own;
    let guest = GuestOptions { own: own.clone(), ..GuestOptions::default() };
    let mut build = options.build.clone();
    let given = [
        ("--build", options.command.is_some()),
        ("--abi", own.abi.is_some()),
        ("--sysroot", own.sysroot.is_some()),
        ("--declare-release", own.declare_release.is_some()),
        ("--declare", !own.declare.is_empty() && !is_own_kernel(&guest, &build)),
    ];
    refuse_unneeded(&given, &[target])?;
    let tree = (target.kind == Kind::Netbsd).then(|| build.source.take()).flatten();
    let mut session = session(general, &build, Some(&guest))?;
    session.choices.limit = options.time_limit.map(Duration::from_secs);
    session.choices.netbsd_tree = tree
        .map(|tree| {
            fs::canonicalize(&tree)
                .map_err(|error| Error::usage(format!("--source {}: {error}", tree.display())))
        })
        .transpose()?;
    Ok(session)
}

/// Opens a session for a program on one target.
fn session_on(general: &General, vm: &VmOptions, name: &str) -> Result<Session> {
    let session = session(general, &vm.build, Some(&vm.guest))?;
    refuse_unused(vm, &[session.targets.named(name)?])?;
    Ok(session)
}

/// Returns the value of an option, or else of an environment variable, and the name of its source.
/// clap cannot handle the variable: an unused option is an error, an unused variable is not.
fn or_variable(
    given: Option<&Path>,
    option: &'static str,
    variable: &'static str,
) -> Option<(PathBuf, &'static str)> {
    let found = || std::env::var_os(variable).filter(|value| !value.is_empty());
    match given {
        Some(path) => Some((path.to_path_buf(), option)),
        None => found().map(|path| (path.into(), variable)),
    }
}

fn key(general: &General, name: &str, source: Option<PathBuf>) -> Result<u8> {
    let session = session(general, &BuildOptions { source, ..BuildOptions::default() }, None)?;
    let target = session.targets.named(name)?;
    let found = || {
        let source = session.source(target)?;
        let compiler = Compiler::of(target, &session.cache, false)?;
        Kernel::recipe(target, &source, &compiler, &session.targets.base, &session.cache)
    };
    match found() {
        Ok(recipe) => print(&format!("{}key {}\n", recipe.text, recipe.key)),
        Err(error) => return no_verdict(target, error),
    }
    Ok(STATUS_PASSED)
}

fn build_all(session: &Session, chosen: &[&Target]) -> Result<u8> {
    let mut status = STATUS_PASSED;
    for target in chosen {
        match session.kernel(target) {
            Ok(kernel) => {
                print(&format!("{}: {} ({})\n", target.name, kernel.file.display(), kernel.origin));
            }
            Err(error) => status = no_verdict(target, error)?,
        }
    }
    Ok(status)
}

/// Reports why a target has no verdict and returns that exit status. Usage errors are passed on, as
/// they do not concern one target.
pub(crate) fn no_verdict(target: &Target, error: Error) -> Result<u8> {
    match error {
        Error::Usage(_) => Err(error),
        Error::Unavailable(_) | Error::NotGiven(_) => {
            complain(target, &error);
            Ok(error.status())
        }
    }
}

/// Prints a target's problem on standard error.
pub(crate) fn complain(target: &Target, why: &dyn Display) {
    eprintln!("kcov-vm: {}: {why}", target.name);
}
