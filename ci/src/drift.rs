//! `drift`: has the suite compare its registry with the sources that the
//! targets are built from.

use crate::commands::complain;
use crate::error::{Error, Phase, Result, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable};
use crate::run::{command, not_started};
use crate::session::Session;
use crate::source::Source;
use crate::target::Target;
use std::path::PathBuf;
use std::process::Stdio;

/// Compares with each tree once. The result is the worst status.
pub fn run(session: &Session, targets: &[&Target]) -> Result<u8> {
    let suite = session.programs.suite()?;
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut worst = STATUS_PASSED;
    for target in targets {
        let tree = Source::of(target, &session.cache, false).and_then(|s| s.tree(&session.cache));
        let tree = match tree {
            Ok(tree) if seen.contains(&tree) => continue,
            Ok(tree) => tree,
            Err(Error::Unavailable(failure)) => {
                complain(target, &failure);
                worst = STATUS_UNAVAILABLE;
                continue;
            }
            Err(Error::NotGiven(what)) => {
                eprintln!("kcov-vm: {}: not run: {what}", target.name);
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut drift = command(&suite);
        drift.args(["drift", "--source"]).arg(&tree).stdout(Stdio::inherit());
        let fail = |why: String| Error::unavailable(Phase::Verdict, why);
        let status = drift.status().map_err(|error| fail(not_started("the suite", &error)))?;
        match status.code().and_then(|code| u8::try_from(code).ok()) {
            Some(code) => worst = worst.max(code),
            None => {
                complain(target, &Unavailable::new(Phase::Verdict, format!("drift: {status}")));
                worst = STATUS_UNAVAILABLE;
            }
        }
        seen.push(tree);
    }
    Ok(worst)
}
