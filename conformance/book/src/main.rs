//! The program behind `cargo vm pages` and `cargo vm drift`. It is separate so that `cargo vm test`
//! does not compile the suite for the host.

use kcov_book::drift::{self, Sources};
use kcov_book::pages;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result, STATUS_FAILED, STATUS_PASSED};
use kcov_vm::output::{lost, print};
use lexopt::prelude::*;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
usage: kcov-book pages DIR
       kcov-book drift [--source DIR] [--manual FILE]

pages  writes the generated pages and pictures of the reference
drift  compares the claims with a source tree, a copy of kcov(4), or both

Exit status: 0 on success, 1 if claims and sources differ, 2 if the command line is wrong, 69 if a
file could not be read or written.
";

/// What the command line asks for.
enum Command {
    Pages(PathBuf),
    Drift(Sources),
}

fn main() -> ExitCode {
    match command().map_err(|why| Error::usage(format!("{why}\n{USAGE}"))).and_then(run) {
        Ok(status) => status.into(),
        Err(error) => {
            eprintln!("kcov-book: {error}");
            error.status().into()
        }
    }
}

fn command() -> std::result::Result<Command, lexopt::Error> {
    let mut words = lexopt::Parser::from_env();
    let mut operands: Vec<PathBuf> = Vec::new();
    let mut sources = Sources::default();
    while let Some(word) = words.next()? {
        match word {
            Long("source") => sources.tree = Some(words.value()?.into()),
            Long("manual") => sources.manual = Some(words.value()?.into()),
            Value(operand) => operands.push(operand.into()),
            _ => return Err(word.unexpected()),
        }
    }
    let is_given = sources != Sources::default();
    match operands.as_slice() {
        [name, directory] if name.as_os_str() == "pages" && !is_given => {
            Ok(Command::Pages(directory.clone()))
        }
        [name] if name.as_os_str() == "drift" && is_given => Ok(Command::Drift(sources)),
        _ => Err("needs a command and what it works on".into()),
    }
}

/// Returns the exit status.
fn run(command: Command) -> Result<u8> {
    match command {
        Command::Pages(directory) => {
            pages::write(&directory).or_unavailable(Phase::Output, "pages")?;
            Ok(STATUS_PASSED)
        }
        Command::Drift(sources) => {
            let mut report = Vec::new();
            let is_same =
                drift::report(&sources, &mut report).or_unavailable(Phase::Verdict, "drift")?;
            print(&String::from_utf8_lossy(&report));
            lost()?;
            Ok(if is_same { STATUS_PASSED } else { STATUS_FAILED })
        }
    }
}
