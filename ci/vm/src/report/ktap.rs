//! KTAP: one test per target, with the checks as subtests.

use super::{Run, TargetReport, Verdict};
use crate::error::{STATUS_PASSED, WRITING};
use crate::verdict::{Check, Outcome};
use std::fmt::Write as _;

/// The whole report.
pub fn render(run: &Run) -> String {
    let mut text = format!("KTAP version 1\n1..{}\n", run.reports.len());
    for (index, report) in run.reports.iter().enumerate() {
        target(report, index + 1, &mut text);
    }
    text
}

fn target(report: &TargetReport, number: usize, text: &mut String) {
    let mut directive = String::new();
    match &report.verdict {
        Verdict::Checks(checks) => {
            writeln!(text, "    KTAP version 1\n    1..{}", checks.len()).expect(WRITING);
            for (index, check) in checks.iter().enumerate() {
                result(check, index + 1, text);
            }
        }
        Verdict::None(why) => diagnostics(&format!("no verdict: {why}"), text),
        Verdict::NotRun(what) if report.required => {
            diagnostics(&format!("not run: {what}"), text);
        }
        Verdict::NotRun(what) => directive = format!(" # SKIP not run: {what}"),
    }
    let word = if report.status() == STATUS_PASSED { "ok" } else { "not ok" };
    writeln!(text, "{word} {number} {}{directive}", report.target).expect(WRITING);
}

fn result(check: &Check, number: usize, text: &mut String) {
    for line in &check.diagnostics {
        writeln!(text, "    # {line}").expect(WRITING);
    }
    let id = &check.id;
    match &check.outcome {
        Outcome::Pass => writeln!(text, "    ok {number} {id}"),
        Outcome::Fail => writeln!(text, "    not ok {number} {id}"),
        Outcome::Skip { reason } => writeln!(text, "    ok {number} {id} # SKIP {reason}"),
    }
    .expect(WRITING);
}

fn diagnostics(lines: &str, text: &mut String) {
    for line in lines.lines() {
        writeln!(text, "# {}", line.trim_end()).expect(WRITING);
    }
}
