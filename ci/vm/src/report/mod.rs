//! The report of a test run, in three formats.

mod junit;
#[cfg(test)]
mod tests;

use crate::error::{STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable};
use crate::verdict::{Check, Counts, Outcome};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// One target's part of the report.
#[derive(Clone, Debug)]
pub struct TargetReport {
    /// The target's name.
    pub target: String,
    /// The name of its kind.
    pub kind: &'static str,
    /// The kernel's release, if it booted.
    pub release: Option<String>,
    /// The kernel's origin.
    pub kernel: Option<String>,
    /// The guest's accelerator.
    pub accelerator: Option<String>,
    /// The result.
    pub verdict: Verdict,
    /// Whether the user named the target, so that it must run.
    pub required: bool,
    /// The time of each step.
    pub times: Vec<(&'static str, Duration)>,
    /// The total time.
    pub wall: Duration,
    /// The log directory.
    pub logs: Option<PathBuf>,
}

/// The result of a target.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// All planned results.
    Checks(Vec<Check>),
    /// No verdict, for this reason.
    None(Unavailable),
    /// Not tried, because this is missing.
    NotRun(String),
}

/// The report of a whole run.
#[derive(Debug)]
pub struct Run {
    /// The targets' reports.
    pub reports: Vec<TargetReport>,
    /// The total time.
    pub wall: Duration,
}

/// The format of a report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One test suite per target, for result collectors.
    Junit,
    /// For programs.
    Json,
}

impl TargetReport {
    /// Makes an empty report on a target.
    pub fn of(target: &crate::target::Target) -> Self {
        Self {
            target: target.name.clone(),
            kind: target.kind.name(),
            release: None,
            kernel: None,
            accelerator: None,
            verdict: Verdict::Checks(Vec::new()),
            required: true,
            times: Vec::new(),
            wall: Duration::ZERO,
            logs: None,
        }
    }

    /// The exit status for this target alone.
    pub fn status(&self) -> u8 {
        match &self.verdict {
            Verdict::None(_) => STATUS_UNAVAILABLE,
            Verdict::NotRun(_) if self.required => STATUS_UNAVAILABLE,
            Verdict::NotRun(_) => STATUS_PASSED,
            Verdict::Checks(checks) if Counts::of(checks).failed > 0 => STATUS_FAILED,
            Verdict::Checks(_) => STATUS_PASSED,
        }
    }

    /// The results; empty if there are none.
    pub fn checks(&self) -> &[Check] {
        match &self.verdict {
            Verdict::Checks(checks) => checks,
            Verdict::None(_) | Verdict::NotRun(_) => &[],
        }
    }

    /// One word for the result.
    fn word(&self) -> &'static str {
        match &self.verdict {
            Verdict::None(_) => "none",
            Verdict::NotRun(_) => "not run",
            Verdict::Checks(_) if self.status() == STATUS_PASSED => "passed",
            Verdict::Checks(_) => "failed",
        }
    }
}

impl Run {
    /// Formats the report on all targets. `verbose` affects only the text format.
    pub fn render(&self, format: Format, verbose: bool) -> String {
        match format {
            Format::Text => {
                let brief = self.reports.len() > 1 && !verbose;
                let targets: String =
                    self.reports.iter().map(|r| text(r, verbose, brief)).collect();
                targets + &self.summary()
            }
            Format::Junit => junit::render(self),
            Format::Json => json_document(self),
        }
    }

    /// Formats the result of each target again; empty for a single target.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        if self.reports.len() > 1 {
            text.push('\n');
            text.extend(self.reports.iter().map(verdict_line));
            text += &format!("{:.1} s\n", self.wall.as_secs_f32());
        }
        text
    }

    /// The worst of the targets' exit statuses. A run of nothing has not passed.
    pub fn status(&self) -> u8 {
        let ran = |report: &TargetReport| !matches!(report.verdict, Verdict::NotRun(_));
        if !self.reports.iter().any(ran) {
            return STATUS_UNAVAILABLE;
        }
        // 69 beats 1 beats 0, so the largest is the worst.
        self.reports.iter().map(TargetReport::status).max().unwrap_or(STATUS_UNAVAILABLE)
    }
}

/// Raise it when a key is renamed, removed or changes its meaning, but not for a new key.
/// docs/src/reports.md documents the keys.
const VERSION: u32 = 2;

/// The whole report, as one JSON document.
fn json_document(run: &Run) -> String {
    let targets: Vec<_> = run.reports.iter().map(json_target).collect();
    let seconds = run.wall.as_secs_f64();
    let document = json!({ "version": VERSION, "targets": targets, "seconds": seconds });
    format!("{document:#}\n")
}

fn json_target(report: &TargetReport) -> Value {
    let (checks, counts, failure) = match &report.verdict {
        Verdict::Checks(checks) => (json!(checks), json!(Counts::of(checks)), Value::Null),
        Verdict::None(why) => {
            let failure = json!({ "phase": why.phase.to_string(), "message": why.message });
            (Value::Null, Value::Null, failure)
        }
        Verdict::NotRun(what) => (Value::Null, Value::Null, json!({ "message": what })),
    };
    let times = report.times.iter().map(|(step, time)| (*step, time.as_secs_f64()));
    json!({
        "target": report.target,
        "kind": report.kind,
        "release": report.release,
        "kernel": report.kernel,
        "accelerator": report.accelerator,
        "verdict": report.word(),
        "counts": counts,
        "checks": checks,
        "failure": failure,
        "seconds": report.wall.as_secs_f64(),
        "steps": times.collect::<BTreeMap<_, _>>(),
        "logs": report.logs,
    })
}

/// Formats one target's part. `brief` omits what is not red.
pub fn text(report: &TargetReport, verbose: bool, brief: bool) -> String {
    let mut text = headline(report);
    let shown = report.checks().iter().filter(|check| !brief || check.outcome.is_red());
    text.extend(shown.map(result));
    text += &verdict_line(report);
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

/// The line with the result.
fn verdict_line(report: &TargetReport) -> String {
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
