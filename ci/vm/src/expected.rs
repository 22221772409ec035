//! Known failures. They are data beside the targets, never changes to a check.
//!
//! `expected-failures/<target>.toml` lists the checks that fail on that target,
//! each with a reason and a link. A listed check that fails is counted
//! separately. A listed check that passes is red, so that no entry outlives its
//! reason.

use crate::error::{Error, Phase, Result, one_line};
use crate::verdict::{Check, Outcome};
use serde::Deserialize;
use std::path::Path;
use std::{fs, io};

/// A check that is known to fail.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Failure {
    /// The check.
    pub id: String,
    /// Why it fails, in one line.
    pub reason: String,
    /// A link to a report or patch.
    pub link: String,
}

/// Loads the known failures of a target; none if it has no file. `base` is the
/// directory of `expected-failures/`; `known` holds all ids.
pub fn load(base: &Path, target: &str, known: &[String]) -> Result<Vec<Failure>> {
    let file = base.join("expected-failures").join(format!("{target}.toml"));
    let fail = |message: String| {
        Error::unavailable(Phase::Targets, format!("{}: {message}", file.display()))
    };
    match fs::read_to_string(&file) {
        Ok(text) => parse(&text, known).map_err(fail),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(fail(error.to_string())),
    }
}

fn parse(text: &str, known: &[String]) -> std::result::Result<Vec<Failure>, String> {
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct File {
        failure: Vec<Failure>,
    }
    let File { failure: list } = toml::from_str(text).map_err(|e| one_line(&e.to_string()))?;
    for (index, Failure { id, reason, link }) in list.iter().enumerate() {
        if !known.contains(id) {
            return Err(format!("there is no check `{id}`"));
        }
        if list[..index].iter().any(|other| other.id == *id) {
            return Err(format!("`{id}` is listed twice"));
        }
        for (key, text) in [("reason", reason), ("link", link)] {
            if text.trim().is_empty() || text.contains('\n') {
                return Err(format!("`{id}`: key `{key}`: must be one line"));
            }
        }
    }
    Ok(list)
}

/// Marks the known failures among the results.
pub fn apply(checks: &mut [Check], known: &[Failure]) {
    for check in checks {
        let Some(failure) = known.iter().find(|failure| failure.id == check.id) else { continue };
        let reason = format!("{} ({})", failure.reason, failure.link);
        match check.outcome {
            Outcome::Fail => check.outcome = Outcome::ExpectedFailure { reason },
            Outcome::Pass => check.outcome = Outcome::UnexpectedPass { reason },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Counts;
    use std::time::Duration;

    const GOOD: &str = "[[failure]]\nid = \"a\"\nreason = \"why\"\nlink = \"where\"\n";

    fn known() -> Vec<String> {
        ["a", "b", "c"].map(String::from).to_vec()
    }

    #[test]
    fn a_listed_failure_is_expected_and_a_listed_pass_is_red() {
        let check = |id: &str, outcome| Check {
            id: id.into(),
            outcome,
            diagnostics: Vec::new(),
            time: Duration::ZERO,
        };
        let list = parse(&format!("{GOOD}{}", GOOD.replace("\"a\"", "\"b\"")), &known());
        let mut checks =
            [check("a", Outcome::Fail), check("b", Outcome::Pass), check("c", Outcome::Fail)];
        apply(&mut checks, &list.expect("valid"));
        let reason = || "why (where)".to_string();
        assert_eq!(checks[0].outcome, Outcome::ExpectedFailure { reason: reason() });
        assert_eq!(checks[1].outcome, Outcome::UnexpectedPass { reason: reason() });
        assert_eq!(checks[2].outcome, Outcome::Fail);
        let counts = Counts { passed: 0, failed: 2, xfailed: 1, skipped: 0 };
        assert_eq!(Counts::of(&checks), counts);
    }

    #[test]
    fn lists_are_held_to_what_there_is() {
        for (text, words) in [
            (GOOD.replace("\"a\"", "\"x\""), "no check `x`"),
            (format!("{GOOD}{GOOD}"), "twice"),
            (GOOD.replace("why", " "), "`reason`"),
            (GOOD.replace("link = \"where\"\n", ""), "link"),
            (format!("{GOOD}colour = 1\n"), "colour"),
            ("failure = 1".to_string(), "failure"),
        ] {
            let why = parse(&text, &known()).expect_err("refused");
            assert!(why.contains(words) && !why.contains('\n'), "{why}");
        }
        let none = tempfile::tempdir().expect("a directory");
        assert!(load(none.path(), "a", &known()).expect("no file, no failures").is_empty());
    }
}
