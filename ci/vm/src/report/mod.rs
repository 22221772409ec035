//! The report of a test run, in three formats.

mod json;
mod junit;
#[cfg(test)]
mod tests;
pub mod text;

use crate::error::{STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable};
use crate::verdict::{Check, Counts};
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
                    self.reports.iter().map(|r| text::target(r, verbose, brief)).collect();
                targets + &self.summary()
            }
            Format::Junit => junit::render(self),
            Format::Json => json::render(self),
        }
    }

    /// Formats the result of each target again; empty for a single target.
    pub fn summary(&self) -> String {
        let mut text = String::new();
        if self.reports.len() > 1 {
            text.push('\n');
            text.extend(self.reports.iter().map(text::verdict));
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
