//! `kcov-book`: `cargo vm pages` and `cargo vm drift` run it. It is a program of its own so that
//! `cargo vm test` need not compile the suite for the host.

use kcov_book::drift::{self, Sources};
use kcov_book::pages;
use kcov_vm::output::{lost, print};
use lexopt::prelude::*;
use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Usage: kcov-book pages DIR
       kcov-book drift [--source DIR] [--manual FILE]

pages  writes the generated pages and pictures of the reference
drift  compares the claims with a source tree, or with a copy of kcov(4)

Exit status: 0 if all is well, 1 if claims and sources differ, 69 if it could not tell.
";

/// The exit statuses. Those of `cargo vm` are the same.
const DIFFERENT: u8 = 1;
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => DIFFERENT.into(),
        Err(error) => {
            eprintln!("kcov-book: {error}");
            UNAVAILABLE.into()
        }
    }
}

/// Runs the command line's command. Returns whether claims and sources agree.
fn run() -> Result<bool, Box<dyn Error>> {
    let mut words = lexopt::Parser::from_env();
    let mut operands: Vec<String> = Vec::new();
    let mut sources = Sources::default();
    while let Some(word) = words.next()? {
        match word {
            Long("source") => sources.tree = Some(PathBuf::from(words.value()?)),
            Long("manual") => sources.manual = Some(PathBuf::from(words.value()?)),
            Value(operand) => operands.push(operand.string()?),
            _ => return Err(word.unexpected().into()),
        }
    }
    let operands: Vec<&str> = operands.iter().map(String::as_str).collect();
    match (operands.as_slice(), sources != Sources::default()) {
        (["pages", directory], false) => {
            pages::write(directory.as_ref())?;
            Ok(true)
        }
        (["drift"], true) => {
            let mut report = Vec::new();
            let agree = drift::report(&sources, &mut report)?;
            print(&String::from_utf8_lossy(&report));
            lost()?;
            Ok(agree)
        }
        _ => Err(USAGE.into()),
    }
}
