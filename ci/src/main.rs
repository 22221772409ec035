//! `cargo vm`: kcov-vm with this project's suite, and the commands that judge the suite.

mod book;
mod cli;
mod commands;
mod mutants;
mod suite;

use clap::Parser as _;
use std::process::ExitCode;

fn main() -> ExitCode {
    match commands::run(cli::Cli::parse()) {
        Ok(status) => ExitCode::from(status),
        Err(error) => {
            eprintln!("kcov-vm: {error}");
            ExitCode::from(error.status())
        }
    }
}
