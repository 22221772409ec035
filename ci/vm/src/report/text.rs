//! The text format.

use super::{TargetReport, Verdict};
use crate::verdict::{Check, Counts, Outcome};
use std::time::Duration;

/// Formats one target's part. `brief` omits passed checks and groups skips.
pub fn target(report: &TargetReport, verbose: bool, brief: bool) -> String {
    let mut text = headline(report);
    let shown = report.checks().iter().filter(|check| !brief || check.outcome.is_red());
    text.extend(shown.map(result));
    if brief {
        text += &skips(report.checks());
    }
    text += &verdict(report);
    if verbose && !report.times.is_empty() {
        let time = |(step, time): &(&str, Duration)| format!("{step} {:.2} s", time.as_secs_f32());
        let times: Vec<_> = report.times.iter().map(time).collect();
        text += &format!("{}: {}\n", report.target, times.join(", "));
    }
    text
}

fn headline(report: &TargetReport) -> String {
    let release = report.release.as_deref().unwrap_or("not booted");
    let mut text = format!("{}: {release} ({}", report.target, report.kind);
    for more in [&report.accelerator, &report.kernel].into_iter().flatten() {
        text += &format!(", {more}");
    }
    text + ")\n"
}

fn result(check: &Check) -> String {
    let id = &check.id;
    match &check.outcome {
        Outcome::Pass => format!("    ok   {id}\n"),
        Outcome::Skip { reason } => format!("    skip {id}: {reason}\n"),
        Outcome::Fail => {
            let lines = check.diagnostics.iter().map(|line| format!("         {line}\n"));
            format!("    FAIL {id}\n{}", lines.collect::<String>())
        }
    }
}

/// A line for each reason to skip, with the number of checks.
fn skips(checks: &[Check]) -> String {
    let mut reasons: Vec<(&str, usize)> = Vec::new();
    for check in checks {
        let Outcome::Skip { reason } = &check.outcome else { continue };
        match reasons.iter_mut().find(|(known, _)| known == reason) {
            Some((_, count)) => *count += 1,
            None => reasons.push((reason, 1)),
        }
    }
    let line = |(reason, count)| {
        let checks = if count == 1 { "check" } else { "checks" };
        format!("    skip {count} {checks}: {reason}\n")
    };
    reasons.into_iter().map(line).collect()
}

/// The line with the result.
pub fn verdict(report: &TargetReport) -> String {
    let name = &report.target;
    match &report.verdict {
        Verdict::Checks(checks) => {
            let Counts { passed, failed, skipped } = Counts::of(checks);
            let wall = report.wall.as_secs_f32();
            let logs = report.logs.as_ref().map(|logs| format!("; logs: {}", logs.display()));
            format!(
                "{name}: {passed} passed, {failed} failed, {skipped} skipped in {wall:.1} s{}\n",
                logs.unwrap_or_default()
            )
        }
        Verdict::None(why) => format!("{name}: no verdict: {why}\n"),
        Verdict::NotRun(what) => format!("{name}: not run: {what}\n"),
    }
}
