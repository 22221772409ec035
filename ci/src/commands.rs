//! What the commands do.

use crate::cache::Cache;
use crate::cli::{
    AccelChoice, BuildOptions, Cli, Command, General, GuestOptions, TestOptions, VmOptions,
};
use crate::error::{Error, Result, STATUS_PASSED};
use crate::guest::Accel;
use crate::kernel::{Compiler, Kernel};
use crate::netbsd::Libraries;
use crate::programs::Programs;
use crate::session::{Choices, Session};
use crate::source::{Package, Source};
use crate::system::System;
use crate::target::{Target, Targets};
use crate::{drift, exec, mutants, tester};
use std::fmt::Display;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::thread::available_parallelism;
use std::time::Duration;

/// Runs a command. The result is the exit status.
pub fn run(cli: Cli) -> Result<u8> {
    let Cli { command, general } = cli;
    match command {
        Command::List => list(&general),
        Command::Build { names, build } => {
            let session = session(&general, &build, None)?;
            let chosen = session.targets.select(&names)?;
            build_all(&session, &chosen)
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
            let mut session = session(&general, &options.build, None)?;
            session.choices.limit = options.time_limit.map(Duration::from_secs);
            let target = session.targets.named(&options.name)?;
            mutants::run(&session, target, &options)
        }
        Command::Exec(options) => {
            let session = session_on(&general, &options.place.vm, &options.name)?;
            exec::exec(&session, *options, general.verbose)
        }
        Command::Trace(options) => {
            let session = session_on(&general, &options.vm, &options.name)?;
            exec::trace(&session, *options, general.verbose)
        }
        Command::Runner(options) => {
            let mut session = session_on(&general, &options.place.vm, &options.name)?;
            session.choices.settled = !options.place.vm.build.refresh;
            exec::runner(&session, *options, general.verbose)
        }
    }
}

/// Refuses options that would change nothing.
fn refuse_unused(vm: &VmOptions, chosen: &[&Target]) -> Result<()> {
    let VmOptions { build, guest } = vm;
    let given = [
        ("--abi", guest.abi.is_some()),
        ("--sysroot", guest.sysroot.is_some()),
        ("--netbsd-kernel", guest.netbsd_kernel.is_some()),
        ("--declare", !guest.declare.is_empty() && !is_own_kernel(guest, build)),
    ];
    refuse_unneeded(&given, chosen)
}

fn refuse_unneeded(given: &[(&str, bool)], chosen: &[&Target]) -> Result<()> {
    if chosen.iter().any(|target| target.kind.system() == System::NetBsd) {
        return Ok(());
    }
    match given.iter().find(|(_, given)| *given) {
        Some(("--declare", _)) => Err(Error::usage(
            "--declare: is for kernels of yours; none is given with --kernel or --source, and no \
             target is netbsd",
        )),
        Some((option, _)) => {
            let names: Vec<_> = chosen.iter().map(|target| target.name.as_str()).collect();
            Err(Error::usage(format!("{option}: is for netbsd targets, not {}", names.join(", "))))
        }
        None => Ok(()),
    }
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
        kernel: guest.and_then(|g| g.kernel.as_deref()).map(Kernel::given).transpose()?,
        netbsd_kernel: guest
            .and_then(|g| or_variable(g.netbsd_kernel.as_deref(), "KCOV_VM_NETBSD_KERNEL"))
            .map(|given| Kernel::given(&given))
            .transpose()?,
        release: guest.and_then(|g| g.declare_release.clone()),
        jobs: build
            .jobs
            .map_or_else(|| available_parallelism().map_or(1, usize::from), |jobs| jobs as usize),
        limit: guest.and_then(|g| g.time_limit).map(Duration::from_secs),
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
        targets.adjust(guest.abi.as_deref(), &guest.declare, is_own_kernel(guest, build))?;
        let sysroot = or_variable(guest.sysroot.as_deref(), "KCOV_VM_NETBSD_SYSROOT");
        let libraries = sysroot.map(|given| Libraries::given(&given, &cache));
        programs.netbsd = libraries.transpose()?;
    }
    Ok(Session { cache, targets, choices, programs })
}

/// A session for a program in a guest of this target.
fn session_on(general: &General, vm: &VmOptions, name: &str) -> Result<Session> {
    let session = session(general, &vm.build, Some(&vm.guest))?;
    refuse_unused(vm, &[session.targets.named(name)?])?;
    Ok(session)
}

/// What an option says, or else the environment. That is no option's default:
/// an option has to be of use, a variable may lie there.
fn or_variable(given: Option<&Path>, name: &str) -> Option<PathBuf> {
    let variable = || std::env::var_os(name).filter(|value| !value.is_empty());
    given.map(Path::to_path_buf).or_else(|| variable().map(PathBuf::from))
}

/// Never looks further than the cache, so that it is there at once.
fn list(general: &General) -> Result<u8> {
    let targets = targets(general)?;
    let cache = Cache::open(general.cache.as_deref())?;
    let mut rows = vec![["TARGET", "KIND", "SOURCE", "DECLARES", "KERNEL"].map(String::from)];
    for target in &targets.all {
        let known = Package::last_known(&target.package, &target.suite, &cache);
        let source = match &known {
            Some(package) => package.to_string(),
            None if target.package.is_empty() => "-".into(),
            None => format!("{} ({})", target.package, target.suite),
        };
        let built = known.is_some_and(|package| {
            let source = Source::Package(package);
            let Ok(Some(compiler)) = Compiler::last_known(target, &cache) else { return false };
            let kernel = Kernel::cached(target, &source, &compiler, &targets.base, &cache);
            matches!(kernel, Ok(Some(_)))
        });
        let name = if target.default { format!("{}*", target.name) } else { target.name.clone() };
        let built = match target.kind.system() {
            System::NetBsd => "give --kernel and --sysroot",
            System::Linux if built => "built",
            System::Linux => "not built",
        };
        rows.push([
            name,
            target.kind.name().into(),
            source,
            target.declares.join(","),
            built.into(),
        ]);
    }
    let mut text = String::new();
    for row in &rows {
        let cells: Vec<_> = (0..row.len())
            .map(|column| {
                let width = rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
                format!("{:width$}", row[column])
            })
            .collect();
        text.push_str(cells.join("  ").trim_end());
        text.push('\n');
    }
    text.push_str("* default\n");
    print(&text);
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

/// Says why a target has no verdict, and gives the exit status for that. What is wrong with the
/// command line is not about one target.
pub(crate) fn no_verdict(target: &Target, error: Error) -> Result<u8> {
    match error {
        Error::Usage(_) => Err(error),
        Error::Unavailable(_) | Error::NotGiven(_) => {
            complain(target, &error);
            Ok(error.status())
        }
    }
}

/// Says on standard error what is wrong with a target.
pub(crate) fn complain(target: &Target, why: &dyn Display) {
    eprintln!("kcov-vm: {}: {why}", target.name);
}

/// Prints, whether or not anybody reads it.
pub(crate) fn print(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}
