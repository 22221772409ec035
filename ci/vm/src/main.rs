//! `kcov-vm`: see `kcov-vm --help`.

use clap::Parser as _;
use kcov_vm::cli::Cli;
use kcov_vm::commands;
use kcov_vm::home::Home;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Cli { command, general } = Cli::parse();
    match commands::run(command, &general, &Home::default()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("kcov-vm: {error}");
            ExitCode::from(error.status())
        }
    }
}
