//! `pages`, and `drift`, which compares the claims with the targets' sources. `kcov-book` reads the
//! claims.

use crate::workspace;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result, STATUS_PASSED, STATUS_UNAVAILABLE};
use kcov_vm::output::no_verdict;
use kcov_vm::session::Session;
use kcov_vm::source::Source;
use kcov_vm::system::System;
use kcov_vm::target::Target;
use kcov_vm::toolchain::cargo;
use std::ffi::OsStr;
use std::path::PathBuf;

/// The sources to compare with.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sources {
    /// A tree of the system's sources.
    pub source: Option<PathBuf>,
    /// A copy of NetBSD's kcov(4).
    pub manual: Option<PathBuf>,
}

impl Sources {
    /// Compares the claims with these sources. Returns the exit status.
    fn compare(&self) -> Result<u8> {
        let mut words: Vec<&OsStr> = vec!["drift".as_ref()];
        for (option, path) in [("--source", &self.source), ("--manual", &self.manual)] {
            words.extend(path.iter().flat_map(|path| [option.as_ref(), path.as_os_str()]));
        }
        run_book(&words)
    }
}

/// Returns a target's sources.
fn sources(session: &Session, target: &Target, given: &Sources) -> Result<Sources> {
    match target.kind.system() {
        System::NetBsd if *given == Sources::default() => {
            let what = "needs --manual FILE (a copy of kcov(4)), --source DIR (NetBSD's), or both";
            Err(Error::NotGiven(what.into()))
        }
        System::NetBsd => Ok(given.clone()),
        System::Linux => {
            let tree = Source::of(target, &session.cache)?.tree(&session.cache)?;
            Ok(Sources { source: Some(tree), manual: None })
        }
    }
}

/// Compares with each tree once and returns the worst exit status. A target
/// without sources fails the run only if it is `named`.
pub fn drift(session: &Session, targets: &[&Target], given: &Sources, named: bool) -> Result<u8> {
    let mut seen: Vec<Sources> = Vec::new();
    let mut worst = STATUS_PASSED;
    for target in targets {
        let sources = match sources(session, target, given) {
            Ok(sources) if seen.contains(&sources) => continue,
            Ok(sources) => sources,
            Err(error) => {
                let counts = named || !matches!(error, Error::NotGiven(_));
                let status = no_verdict(target, error)?;
                if counts {
                    worst = status;
                }
                continue;
            }
        };
        worst = worst.max(sources.compare()?);
        seen.push(sources);
    }
    // No comparison means no success.
    Ok(if seen.is_empty() { STATUS_UNAVAILABLE } else { worst })
}

/// The exit status of cargo if a build fails.
const NOT_BUILT: i32 = 101;

/// Runs one of `kcov-book`'s commands and returns the exit status.
pub fn run_book(words: &[&OsStr]) -> Result<u8> {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--package", "kcov-book", "--manifest-path"]);
    cargo.arg(workspace().join("Cargo.toml")).arg("--").args(words);
    let status = cargo.status().or_unavailable(Phase::Output, "cargo")?;
    match status.code().filter(|code| *code != NOT_BUILT).map(u8::try_from) {
        Some(Ok(code)) => Ok(code),
        _ => Err(Error::unavailable(Phase::Output, format!("kcov-book: {status}"))),
    }
}
