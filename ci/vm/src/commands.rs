//! Runs the commands.

use crate::arch::Arch;
use crate::cache::Cache;
use crate::cli::{BuildOptions, Command, General, GuestOptions, ProgramOptions, TestOptions};
use crate::context::{Context, refuse_unused};
use crate::error::{Result, STATUS_PASSED};
use crate::home::Home;
use crate::kernel::{Compiler, Kernel, Place};
use crate::output::{self, no_verdict, print};
use crate::session::Session;
use crate::source::{self, Source};
use crate::system::System;
use crate::target::{LOCK, Target, Targets};
use crate::{env, exec, fuzz, tester};

/// Runs a command and returns the exit status.
pub fn run(command: Command, general: &General, home: &Home) -> Result<u8> {
    let context = Context::new(general, home)?;
    let status = carry_out(command, &context)?;
    output::lost()?;
    Ok(status)
}

/// Runs a command in this context.
pub fn carry_out(command: Command, context: &Context<'_>) -> Result<u8> {
    let Context { targets, cache, general, .. } = context;
    let session = |run: &ProgramOptions| context.session_on(&run.vm, &run.name);
    match command {
        Command::List => {
            print(&list(targets, cache));
            Ok(STATUS_PASSED)
        }
        Command::Build { names, build } => {
            let session = context.session(&build, &GuestOptions::default())?;
            let chosen = session.targets.select(&names)?;
            build_all(&session, &chosen)
        }
        Command::Key { name, build } => key(context, &name, &build),
        Command::Lock => {
            print(&match source::raise(&targets.base, &targets.wanted(), cache)? {
                changes if changes.is_empty() => format!("{LOCK}: all versions are the newest\n"),
                changes => changes,
            });
            Ok(STATUS_PASSED)
        }
        Command::Test(options) => test(context, &options),
        Command::Exec(options) => {
            exec::exec(session(&options.run)?, *options, None, general.verbose)
        }
        Command::Shell(options) => exec::shell(&session(&options)?, *options, general.verbose),
        Command::Fuzz(options) => fuzz::fuzz(&session(&options.run)?, *options),
        Command::Trace(options) => exec::trace(session(&options.run)?, *options, general.verbose),
        Command::Env { name, vm } => {
            let session = context.session_on(&vm, &name)?;
            let target = session.targets.named(&name)?;
            env::run(&session, target)
        }
        Command::Runner { no_tree, exec } => {
            exec::exec(session(&exec.run)?, *exec, Some(!no_tree), general.verbose)
        }
    }
}

/// Tests targets.
pub fn test(context: &Context<'_>, options: &TestOptions) -> Result<u8> {
    let session = context.session(&options.vm.build, &options.vm.guest)?;
    let chosen = session.targets.select(&options.names)?;
    let chosen = if options.all { session.targets.all.iter().collect() } else { chosen };
    refuse_unused(&options.vm, &chosen)?;
    tester::test(&session, &chosen, options, context.general.verbose)
}

fn key(context: &Context<'_>, name: &str, build: &BuildOptions) -> Result<u8> {
    let session = context.session(build, &GuestOptions::default())?;
    let target = session.targets.named(name)?;
    let found = || {
        let source = session.source(target)?;
        let compiler = Compiler::of(target)?;
        Place::of(target, &source, &compiler, &session.cache)
    };
    match found() {
        Ok(Place { ingredients, .. }) => {
            print(&format!("{}key {}\n", ingredients.text(), ingredients.key()));
        }
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

/// Returns one line for each target, from the cache alone, without a search.
fn list(targets: &Targets, cache: &Cache) -> String {
    let head = ["TARGET", "KIND", "SOURCE", "KERNEL"].map(String::from);
    let rows: Vec<_> = targets.all.iter().map(|target| row(target, targets, cache)).collect();
    let all = || std::iter::once(&head).chain(&rows);
    let widths: [usize; 4] =
        std::array::from_fn(|column| all().map(|row| row[column].len()).max().unwrap_or(0));
    let mut text = String::new();
    for row in all() {
        let cells: Vec<_> =
            std::iter::zip(row, widths).map(|(cell, width)| format!("{cell:width$}")).collect();
        text += &format!("{}\n", cells.join("  ").trim_end());
    }
    text + "* default\n"
}

fn row(target: &Target, targets: &Targets, cache: &Cache) -> [String; 4] {
    let known = Source::last_known(target, cache);
    let source = match &known {
        Some(Source::Package(package)) => package.short(),
        Some(source) => source.describe(),
        None if target.package.is_empty() => "-".into(),
        None => format!("{} ({})", target.package, target.suite),
    };
    let built = known.is_some_and(|source| {
        let Ok(compiler) = Compiler::of(target) else { return false };
        let kernel = Kernel::cached(target, &source, &compiler, cache);
        matches!(kernel, Ok(Some(_)))
    });
    let built = match target.kind.system() {
        System::NetBsd => "--kernel",
        System::Linux if built => "built",
        System::Linux => "not built",
    };
    let defaults = targets.defaults(Arch::host());
    let mark = if defaults.iter().any(|it| it.name == target.name) { "*" } else { "" };
    [format!("{}{mark}", target.name), target.kind.name().into(), source, built.into()]
}
