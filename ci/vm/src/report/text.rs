//! The text format.

use super::{TargetReport, Verdict};
use crate::error::WRITING;
use crate::verdict::{Check, Counts, Outcome};
use std::fmt::Write as _;

/// Formats one target's part.
pub fn target(report: &TargetReport, verbose: bool, brief: bool) -> String {
    let mut text = headline(report);
    for check in report.checks() {
        if !brief || check.outcome.is_red() {
            result(&mut text, check);
        }
    }
    if brief {
        skips(&mut text, report.checks());
    }
    verdict(&mut text, report);
    if verbose && !report.times.is_empty() {
        let time = |(step, time): &(&str, std::time::Duration)| {
            format!("{step} {:.2} s", time.as_secs_f32())
        };
        let times: Vec<_> = report.times.iter().map(time).collect();
        writeln!(text, "{}: {}", report.target, times.join(", ")).expect(WRITING);
    }
    text
}

fn headline(report: &TargetReport) -> String {
    let mut text = report.target.clone();
    match &report.release {
        Some(release) => write!(text, ": {release}"),
        None => write!(text, ": not booted"),
    }
    .expect(WRITING);
    write!(text, " ({}", report.kind).expect(WRITING);
    for more in [&report.accelerator, &report.kernel].into_iter().flatten() {
        write!(text, ", {more}").expect(WRITING);
    }
    text.push_str(")\n");
    text
}

/// A word of four letters for an outcome.
fn word(outcome: &Outcome) -> &'static str {
    match outcome {
        Outcome::Pass => "ok",
        Outcome::Fail => "FAIL",
        Outcome::Skip { .. } => "skip",
    }
}

fn result(text: &mut String, check: &Check) {
    write!(text, "    {:<4} {}", word(&check.outcome), check.id).expect(WRITING);
    if let Outcome::Skip { reason } = &check.outcome {
        write!(text, ": {reason}").expect(WRITING);
    }
    text.push('\n');
    if check.outcome == Outcome::Fail {
        for line in &check.diagnostics {
            writeln!(text, "         {line}").expect(WRITING);
        }
    }
}

/// Writes a line for each reason to skip, with the number of checks.
fn skips(text: &mut String, checks: &[Check]) {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for check in checks {
        let Outcome::Skip { reason } = &check.outcome else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    for (reason, count) in reasons {
        let checks = if count == 1 { "check" } else { "checks" };
        writeln!(text, "    skip {count} {checks}: {reason}").expect(WRITING);
    }
}

/// Writes the line with the result.
pub fn verdict(text: &mut String, report: &TargetReport) {
    let name = &report.target;
    match &report.verdict {
        Verdict::Checks(checks) => {
            let Counts { passed, failed, skipped } = Counts::of(checks);
            let wall = report.wall.as_secs_f32();
            write!(
                text,
                "{name}: {passed} passed, {failed} failed, {skipped} skipped in {wall:.1} s"
            )
            .expect(WRITING);
            if let Some(logs) = &report.logs {
                write!(text, "; logs: {}", logs.display()).expect(WRITING);
            }
            text.push('\n');
        }
        Verdict::None(why) => writeln!(text, "{name}: no verdict: {why}").expect(WRITING),
        Verdict::NotRun(what) => writeln!(text, "{name}: not run: {what}").expect(WRITING),
    }
}
