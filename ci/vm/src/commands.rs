//! Runs the commands.

use crate::cli::{BuildOptions, Command, General, GuestOptions, ProgramOptions, TestOptions};
use crate::context::{Context, refuse_unused};
use crate::error::{Result, STATUS_PASSED};
use crate::home::Home;
use crate::kernel::{Compiler, Place};
use crate::output::{self, no_verdict, print};
use crate::session::Session;
use crate::source;
use crate::target::{LOCK, Target};
use crate::{clean, env, exec, fuzz, list, tester};
use std::time::Duration;

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
            print(&list::render(targets, cache));
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
        Command::Clean { dry_run, days } => {
            let age = Duration::from_secs(days.saturating_mul(24 * 60 * 60));
            print(&clean::run(cache, age, dry_run)?);
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
        let compiler = Compiler::of(target, &session.cache)?;
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
