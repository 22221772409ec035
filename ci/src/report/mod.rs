//! What a test run has to say, in four forms.

mod json;
mod junit;
mod ktap;
mod table;
#[cfg(test)]
mod tests;
mod text;

use crate::error::{STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable};
use crate::verdict::{Check, Counts};
use std::path::PathBuf;
use std::time::Duration;

/// One target's part of the report.
#[derive(Clone, Debug)]
pub struct TargetReport {
    /// The target's name.
    pub target: String,
    /// Its kind's word.
    pub kind: &'static str,
    /// The kernel's release, if it came to say it.
    pub release: Option<String>,
    /// Where the kernel comes from.
    pub kernel: Option<String>,
    /// What executed the guest.
    pub accelerator: Option<String>,
    /// What came of it.
    pub verdict: Verdict,
    /// Whether the user named it, so that it has to run.
    pub required: bool,
    /// How long the steps took.
    pub times: Vec<(&'static str, Duration)>,
    /// How long all took.
    pub wall: Duration,
    /// Where the logs are.
    pub logs: Option<PathBuf>,
}

/// What came of a target.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// All planned results.
    Checks(Vec<Check>),
    /// None, for this reason.
    None(Unavailable),
    /// It was not tried, for want of this.
    NotRun(String),
}

/// All of a run.
#[derive(Debug)]
pub struct Run {
    /// What the targets have to say.
    pub reports: Vec<TargetReport>,
    /// How long it took.
    pub wall: Duration,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One test with subtests per target.
    Ktap,
    /// One test suite per target, for what collects results.
    Junit,
    /// For programs.
    Json,
}

impl TargetReport {
    /// A target of which nothing is known yet.
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

    /// The exit status that this target alone would give.
    pub fn status(&self) -> u8 {
        match &self.verdict {
            Verdict::None(_) => STATUS_UNAVAILABLE,
            Verdict::NotRun(_) if self.required => STATUS_UNAVAILABLE,
            Verdict::NotRun(_) => STATUS_PASSED,
            Verdict::Checks(checks) if Counts::of(checks).failed > 0 => STATUS_FAILED,
            Verdict::Checks(_) => STATUS_PASSED,
        }
    }

    /// The results, or none.
    pub fn checks(&self) -> &[Check] {
        match &self.verdict {
            Verdict::Checks(checks) => checks,
            Verdict::None(_) | Verdict::NotRun(_) => &[],
        }
    }

    /// One word for what came of it.
    fn word(&self) -> &'static str {
        match &self.verdict {
            Verdict::None(_) => "none",
            Verdict::NotRun(_) => "not run",
            Verdict::Checks(_) if self.status() == STATUS_PASSED => "passed",
            Verdict::Checks(_) => "failed",
        }
    }

    /// For people. `brief` leaves out what passed and puts skips together.
    pub fn text(&self, verbose: bool, brief: bool) -> String {
        text::target(self, verbose, brief)
    }
}

impl Run {
    /// The report on all targets. `verbose` is for people only.
    pub fn render(&self, format: Format, verbose: bool) -> String {
        match format {
            Format::Text => {
                let brief = self.reports.len() > 1 && !verbose;
                let targets: String = self.reports.iter().map(|r| r.text(verbose, brief)).collect();
                targets + &self.table(verbose)
            }
            Format::Ktap => ktap::render(self),
            Format::Junit => junit::render(self),
            Format::Json => json::render(self),
        }
    }

    /// Checks by targets, and counts; nothing if there is one target only.
    pub fn table(&self, verbose: bool) -> String {
        if self.reports.len() < 2 { String::new() } else { table::render(self, verbose) }
    }

    /// The worst of the targets' exit statuses. Where nothing was run nothing
    /// has passed.
    pub fn status(&self) -> u8 {
        let ran = |report: &TargetReport| !matches!(report.verdict, Verdict::NotRun(_));
        if !self.reports.iter().any(ran) {
            return STATUS_UNAVAILABLE;
        }
        // 69 beats 1 beats 0, so the largest is the worst.
        self.reports.iter().map(TargetReport::status).max().unwrap_or(STATUS_UNAVAILABLE)
    }
}
