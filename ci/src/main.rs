//! `cargo vm`: see `cargo vm --help`.

use clap::Parser as _;
use kcov_vm::cli::Cli;
use kcov_vm::commands;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("kcov-vm: {error}");
            ExitCode::from(error.status())
        }
    }
}
