//! `drift`: compares the claims with the targets' sources.

use kcov_book::drift::{Sources, report};
use kcov_vm::error::{
    Error, Phase, Result, STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable,
};
use kcov_vm::output::{complain, no_verdict, print};
use kcov_vm::session::Session;
use kcov_vm::source::Source;
use kcov_vm::system::System;
use kcov_vm::target::Target;
use std::path::{Path, PathBuf};

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

    fn sources(&self) -> Result<Sources> {
        let Self { source, manual } = self;
        if source.is_none() && manual.is_none() {
            let what = "needs --manual FILE (a copy of kcov(4)), --source DIR (NetBSD's), or both";
            return Err(Error::NotGiven(what.into()));
        }
        Ok(Sources { tree: source.clone(), manual: manual.clone() })
    }
}

/// Returns a target's sources.
fn sources(session: &Session, target: &Target, given: &Given) -> Result<Sources> {
    match target.kind.system() {
        System::NetBsd => given.sources(),
        System::Linux => {
            let base = &session.targets.base;
            let tree = Source::of(target, base, &session.cache, false)?.tree(&session.cache)?;
            Ok(Sources { tree: Some(tree), manual: None })
        }
    }
}

/// Compares with each tree once and returns the worst exit status. A target
/// without sources fails the run only if it is `named`.
pub fn run(session: &Session, targets: &[&Target], given: &Given, named: bool) -> Result<u8> {
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
        let mut said = Vec::new();
        let status = match report(&sources, &mut said) {
            Ok(true) => STATUS_PASSED,
            Ok(false) => STATUS_FAILED,
            Err(error) => {
                complain(target, &Unavailable::new(Phase::Verdict, format!("drift: {error}")));
                STATUS_UNAVAILABLE
            }
        };
        print(&String::from_utf8_lossy(&said));
        worst = worst.max(status);
        seen.push(sources);
    }
    // No comparison means no success.
    Ok(if seen.is_empty() { STATUS_UNAVAILABLE } else { worst })
}
