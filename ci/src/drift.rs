//! `drift`: lets the suite compare its claims with the targets' sources.

use kcov_vm::error::{Error, Phase, Result, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable};
use kcov_vm::output::{complain, no_verdict};
use kcov_vm::run::{command, not_started};
use kcov_vm::session::Session;
use kcov_vm::source::Source;
use kcov_vm::system::System;
use kcov_vm::target::Target;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// NetBSD's sources, which the user provides.
#[derive(Debug)]
pub struct Given {
    source: Option<PathBuf>,
    manual: Option<PathBuf>,
}

impl Given {
    /// Takes the given paths, which must exist.
    pub fn new(source: Option<PathBuf>, manual: Option<PathBuf>) -> Result<Self> {
        let missing = |option, path: &Option<PathBuf>, what, there: fn(&Path) -> bool| match path {
            Some(path) if !there(path) => {
                Err(Error::usage(format!("{option} {}: there is no such {what}", path.display())))
            }
            _ => Ok(()),
        };
        missing("--source", &source, "directory", Path::is_dir)?;
        missing("--manual", &manual, "file", Path::is_file)?;
        Ok(Self { source, manual })
    }

    fn arguments(&self) -> Result<Vec<OsString>> {
        let mut arguments = Vec::new();
        for (option, path) in [("--source", &self.source), ("--manual", &self.manual)] {
            if let Some(path) = path {
                arguments.extend([option.into(), path.clone().into_os_string()]);
            }
        }
        if arguments.is_empty() {
            let what = "needs --manual FILE (a copy of kcov(4)), --source DIR (NetBSD's), or both";
            return Err(Error::NotGiven(what.into()));
        }
        Ok(arguments)
    }
}

/// Returns the suite's arguments that name a target's sources.
fn sources(session: &Session, target: &Target, given: &Given) -> Result<Vec<OsString>> {
    match target.kind.system() {
        System::NetBsd => given.arguments(),
        System::Linux => {
            let base = &session.targets.base;
            let tree = Source::of(target, base, &session.cache, false)?.tree(&session.cache)?;
            Ok(vec!["--source".into(), tree.into_os_string()])
        }
    }
}

/// Compares with each tree once and returns the worst exit status. A target
/// without sources fails the run only if it is `named`.
pub fn run(session: &Session, targets: &[&Target], given: &Given, named: bool) -> Result<u8> {
    let suite = session.programs.suite()?;
    let mut seen: Vec<Vec<OsString>> = Vec::new();
    let mut worst = STATUS_PASSED;
    for target in targets {
        let arguments = match sources(session, target, given) {
            Ok(arguments) if seen.contains(&arguments) => continue,
            Ok(arguments) => arguments,
            Err(error) => {
                let counts = named || !matches!(error, Error::NotGiven(_));
                let status = no_verdict(target, error)?;
                if counts {
                    worst = status;
                }
                continue;
            }
        };
        let mut drift = command(&suite);
        drift.arg("drift").args(&arguments).stdout(Stdio::inherit());
        let fail = |why: String| Error::unavailable(Phase::Verdict, why);
        let status = drift.status().map_err(|error| fail(not_started("the suite", &error)))?;
        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => worst = worst.max(code),
            None => {
                complain(target, &Unavailable::new(Phase::Verdict, format!("drift: {status}")));
                worst = STATUS_UNAVAILABLE;
            }
        }
        seen.push(arguments);
    }
    // No comparison means no success.
    Ok(if seen.is_empty() { STATUS_UNAVAILABLE } else { worst })
}
