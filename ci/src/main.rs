//! `cargo vm`: kcov-vm with this project's suite, and the commands that judge the suite.

mod book;
mod cli;
mod commands;
mod mutants;

use clap::Parser as _;
use std::path::Path;
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

/// The workspace that built this program.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}
