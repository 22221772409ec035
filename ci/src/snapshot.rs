//! What each kernel does, as text: one line per check, sorted, kept in the
//! tree. A kernel that behaves otherwise than the last one shows as a diff.

use crate::error::{OrUnavailable as _, Phase, Result, WRITING};
use crate::verdict::{Check, Outcome};
use similar::TextDiff;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

/// What a program may say in a diagnostic about what it saw. It stands in the
/// snapshot too.
const OBSERVED: &str = "observed: ";

/// What is to be done with snapshots.
#[derive(Clone, Copy, Debug, Eq, PartialEq, clap::ValueEnum)]
pub enum Snapshots {
    /// A difference is a failure.
    Check,
    /// Write them.
    Update,
}

/// The text of a snapshot.
pub fn render(checks: &[Check]) -> String {
    let mut lines: Vec<_> = checks.iter().map(line).collect();
    lines.sort();
    lines.concat()
}

fn line(check: &Check) -> String {
    let (word, reason) = match &check.outcome {
        Outcome::Pass | Outcome::UnexpectedPass { .. } => ("ok", None),
        Outcome::Fail => ("FAIL", None),
        Outcome::ExpectedFailure { reason } => ("xfail", Some(reason)),
        Outcome::Skip { reason } => ("skip", Some(reason)),
    };
    let mut line = format!("{} {word}", check.id);
    if let Some(reason) = reason {
        write!(line, ": {reason}").expect(WRITING);
    }
    for seen in check.diagnostics.iter().filter_map(|text| text.strip_prefix(OBSERVED)) {
        write!(line, ", {seen}").expect(WRITING);
    }
    line.push('\n');
    line
}

/// Compares results with a target's snapshot, or writes it. The result is a
/// unified diff, if they differ.
pub fn settle(
    directory: &Path,
    target: &str,
    checks: &[Check],
    wanted: Snapshots,
) -> Result<Option<String>> {
    let file = path(directory, target);
    let now = render(checks);
    if wanted == Snapshots::Update {
        fs::create_dir_all(directory).or_unavailable(Phase::Verdict, directory.display())?;
        fs::write(&file, &now).or_unavailable(Phase::Verdict, file.display())?;
        return Ok(None);
    }
    let known = match fs::read_to_string(&file) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
        read => read.or_unavailable(Phase::Verdict, file.display()),
    }?;
    Ok(difference(&format!("snapshots/{target}.txt"), &known, &now))
}

fn path(directory: &Path, target: &str) -> PathBuf {
    directory.join(format!("{target}.txt"))
}

fn difference(name: &str, known: &str, now: &str) -> Option<String> {
    (known != now).then(|| {
        let diff = TextDiff::from_lines(known, now);
        diff.unified_diff().context_radius(0).header(name, "this run").to_string()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn checks() -> Vec<Check> {
        let check = |id: &str, outcome, said: &[&str]| Check {
            id: id.into(),
            outcome,
            diagnostics: said.iter().map(ToString::to_string).collect(),
            time: Duration::from_secs(1),
        };
        vec![
            check("b", Outcome::Pass, &["noise", "observed: EINVAL"]),
            check("a", Outcome::Skip { reason: "not here".into() }, &[]),
            check("c", Outcome::Fail, &["left is not right"]),
        ]
    }

    #[test]
    fn a_snapshot_is_sorted_and_without_noise() {
        assert_eq!(render(&checks()), "a skip: not here\nb ok, EINVAL\nc FAIL\n");
    }

    #[test]
    fn what_differs_is_shown_and_updating_settles_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let settle = |checks: &[Check], wanted| {
            settle(directory.path(), "t", checks, wanted).expect("it can be read and written")
        };
        let mut checks = checks();
        let all_new = settle(&checks, Snapshots::Check).expect("there is none yet");
        assert!(all_new.contains("+b ok, EINVAL\n"), "{all_new}");
        assert_eq!(settle(&checks, Snapshots::Update), None);
        assert_eq!(settle(&checks, Snapshots::Check), None);
        checks[0].diagnostics[1] = "observed: EBUSY".into();
        let expected =
            "--- snapshots/t.txt\n+++ this run\n@@ -2 +2 @@\n-b ok, EINVAL\n+b ok, EBUSY\n";
        assert_eq!(settle(&checks, Snapshots::Check).as_deref(), Some(expected));
    }
}
