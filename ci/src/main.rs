//! `cargo vm`: kcov-vm with this project's suite, and the commands that judge the suite.

mod book;
mod cli;
mod mutants;

use clap::Parser as _;
use cli::{Cli, Command, MutantsOptions};
use kcov_vm::cli::{BuildOptions, General, GuestOptions, VmOptions};
use kcov_vm::commands;
use kcov_vm::context::{Context, refuse_unneeded, refuse_unused};
use kcov_vm::error::{Error, Result};
use kcov_vm::home::Home;
use kcov_vm::output;
use kcov_vm::target::Kind;
use std::fs;
use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("kcov-vm: {error}");
            ExitCode::from(error.status())
        }
    }
}

/// Runs a command and returns the exit status.
fn run(cli: Cli) -> Result<u8> {
    let Cli { command, general } = cli;
    let home = Home {
        workspace: Some(workspace().into()),
        targets: Some(workspace().join("ci/data/targets.toml")),
    };
    let status = carry_out(command, &general, &home)?;
    output::lost()?;
    Ok(status)
}

fn carry_out(command: Command, general: &General, home: &Home) -> Result<u8> {
    let context = Context::new(general, home)?;
    match command {
        Command::Vm(command) => commands::carry_out(command, &context),
        Command::Pages { directory } => book::run_book(&["pages".as_ref(), directory.as_ref()]),
        Command::Lockstep(options) => commands::test(&context, &options.into_test()),
        Command::Drift { names, source, manual } => {
            let session = context.session(&BuildOptions::default(), &GuestOptions::default())?;
            let named = session.targets.select(&names)?;
            let chosen =
                if names.is_empty() { session.targets.all.iter().collect() } else { named };
            let options = [("--source", source.is_some()), ("--manual", manual.is_some())];
            refuse_unneeded(&options, &chosen)?;
            let given = book::Sources { source, manual };
            book::drift(&session, &chosen, &given, !names.is_empty())
        }
        Command::Mutants(options) => alterations(&context, &options),
    }
}

/// Runs `mutants`. The source of NetBSD's target is a tree of NetBSD's.
fn alterations(context: &Context<'_>, options: &MutantsOptions) -> Result<u8> {
    let chosen = mutants::select(mutants::Alteration::all()?, options, &context.targets)?;
    let mut names: Vec<&str> = chosen.iter().map(|one| one.on.as_str()).collect();
    names.dedup();
    let targets = names.into_iter().map(|name| context.targets.named(name));
    let targets = targets.collect::<Result<Vec<_>>>()?;
    let own = &options.own;
    let guest = GuestOptions { own: own.clone(), ..GuestOptions::default() };
    let mut vm = VmOptions { build: options.build.clone(), guest };
    refuse_unused(&vm, &targets)?;
    let release = own.declare_release.is_some();
    let given = [("--build", options.command.is_some()), ("--declare-release", release)];
    refuse_unneeded(&given, &targets)?;
    let is_netbsd = targets.iter().any(|target| target.kind == Kind::Netbsd);
    let tree = is_netbsd.then(|| vm.build.source.take()).flatten();
    let session = context.session(&vm.build, &vm.guest)?;
    let tree = tree.map(|tree| {
        fs::canonicalize(&tree)
            .map_err(|error| Error::usage(format!("--source {}: {error}", tree.display())))
    });
    mutants::run(&session, &chosen, tree.transpose()?.as_deref(), options)
}

/// The workspace that built this program.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}
