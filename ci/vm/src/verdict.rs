//! Reads a program's results, as strict KTAP.
//!
//! A verdict requires complete results: one plan before all results, each planned result once and
//! in order, and an exit status that agrees. Anything else is an [`Err`] that says what is wrong,
//! never a pass.

use crate::lines::Lines;
use kcov_vm_guest::protocol::Exit;
use serde::{Serialize, Serializer};
use std::time::{Duration, Instant};

/// One result.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Check {
    /// The check's id.
    pub id: String,
    /// Its outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The diagnostics before its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<String>,
    /// The time since the previous result.
    #[serde(rename = "seconds", serialize_with = "seconds")]
    pub time: Duration,
}

fn seconds<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(time.as_secs_f64())
}

/// The outcome of a check.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It ran and passed.
    Pass,
    /// It ran and failed.
    Fail,
    /// It did not run.
    Skip {
        /// The reason.
        reason: String,
    },
}

impl Outcome {
    /// Whether it makes the run fail.
    pub fn is_red(&self) -> bool {
        *self == Self::Fail
    }
}

/// The number of checks with each outcome.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Passed checks.
    pub passed: usize,
    /// Failed checks.
    pub failed: usize,
    /// Checks that did not run.
    pub skipped: usize,
}

impl Counts {
    /// Counts the results.
    pub fn of(checks: &[Check]) -> Self {
        let mut counts = Self::default();
        for check in checks {
            match check.outcome {
                Outcome::Pass => counts.passed += 1,
                Outcome::Fail => counts.failed += 1,
                Outcome::Skip { .. } => counts.skipped += 1,
            }
        }
        counts
    }
}

/// Parses results as they arrive.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    lines: Lines,
    plan: Option<usize>,
    checks: Vec<Check>,
    diagnostics: Vec<String>,
    last: Option<Instant>,
    /// The first error.
    wrong: Option<String>,
}

impl Reader {
    /// Takes bytes of the program's standard output.
    pub fn feed(&mut self, bytes: &[u8]) {
        let mut lines = std::mem::take(&mut self.lines);
        lines.feed(bytes, |line| self.line(&String::from_utf8_lossy(line)));
        self.lines = lines;
    }

    /// The results so far, and the planned number.
    pub fn progress(&self) -> (&[Check], Option<usize>) {
        (&self.checks, self.plan)
    }

    fn line(&mut self, line: &str) {
        let line = line.trim_end();
        if let Some(reason) = line.strip_prefix("Bail out!") {
            self.wrong(format!("the program bailed out: {}", reason.trim()));
        } else if let Some(count) = line.strip_prefix("1..") {
            self.planned(count);
        } else if let Some(rest) = line.strip_prefix("ok ") {
            self.result(rest, true);
        } else if let Some(rest) = line.strip_prefix("not ok ") {
            self.result(rest, false);
        } else if self.plan.is_some() && !line.is_empty() {
            // Either `# text` or a line that a check printed itself.
            let text = line.strip_prefix('#').map_or(line, |text| text.trim_start());
            self.diagnostics.push(text.to_string());
        }
    }

    fn planned(&mut self, count: &str) {
        let count = count.split('#').next().unwrap_or_default().trim();
        match (count.parse(), self.plan) {
            (Ok(_), Some(_)) => self.wrong("there is a second plan".into()),
            (Ok(count), None) => {
                self.plan = Some(count);
                self.last = Some(Instant::now());
            }
            (Err(_), _) => self.wrong(format!("cannot read the plan `1..{count}`")),
        }
    }

    fn result(&mut self, rest: &str, ok: bool) {
        let diagnostics = std::mem::take(&mut self.diagnostics);
        let Some(plan) = self.plan else {
            return self.wrong(format!("a result came before the plan: `{rest}`"));
        };
        let (number, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let (id, directive) = rest.split_once('#').unwrap_or((rest, ""));
        let id = id.trim().trim_start_matches("- ").to_string();
        let Ok(number) = number.parse::<usize>() else {
            return self.wrong(format!("a result has no number: `{number} {rest}`"));
        };
        let next = self.checks.len() + 1;
        if number < next {
            return self.wrong(format!("result {number} ({id}) came twice"));
        }
        if number > plan {
            return self.wrong(format!("result {number} ({id}) is not in the plan 1..{plan}"));
        }
        if number > next {
            return self.wrong(format!("result {number} ({id}) came where {next} was due"));
        }
        if id.is_empty() {
            return self.wrong(format!("result {number} has no id"));
        }
        if self.checks.iter().any(|check| check.id == id) {
            return self.wrong(format!("two results have the id {id}"));
        }
        let directive = directive.trim();
        let outcome = match (strip_word(directive, "SKIP"), ok) {
            (Some(""), _) => return self.wrong(format!("{id} is skipped without a reason")),
            (Some(_), false) => return self.wrong(format!("{id} is both `not ok` and skipped")),
            (Some(reason), true) => Outcome::Skip { reason: reason.to_string() },
            (None, true) => Outcome::Pass,
            (None, false) => Outcome::Fail,
        };
        let now = Instant::now();
        let time = self.last.replace(now).map_or(Duration::ZERO, |last| now - last);
        self.checks.push(Check { id, outcome, diagnostics, time });
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// Judges the results after the program has ended.
    pub fn finish(mut self, exit: Exit) -> Result<Vec<Check>, String> {
        std::mem::take(&mut self.lines).end(|line| self.line(&String::from_utf8_lossy(line)));
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let ended = match exit {
            Exit::Status(status) => format!("the program exited with status {status}"),
            Exit::Signal(signal) => format!("the program was killed by signal {signal}"),
        };
        let Some(plan) = self.plan else {
            return Err(format!("there is no plan; {ended}"));
        };
        let count = self.checks.len();
        if count < plan {
            return Err(match plan - count {
                1 => format!("result {plan} of {plan} is missing; {ended}"),
                _ => format!("results {} to {plan} of {plan} are missing; {ended}", count + 1),
            });
        }
        let failed = Counts::of(&self.checks).failed;
        match exit {
            Exit::Status(0) if failed == 0 => Ok(self.checks),
            Exit::Status(1) if failed > 0 => Ok(self.checks),
            // If no check ran, the program may report that it has no verdict. The caller decides
            // with all results, because one guest's share may consist of skips.
            Exit::Status(69) if none_ran(&self.checks).is_some() => Ok(self.checks),
            _ => Err(format!("{ended}, but {failed} of {plan} checks failed")),
        }
    }
}

/// Explains in one line why results without an executed check prove nothing.
pub(crate) fn none_ran(checks: &[Check]) -> Option<String> {
    let [first, more @ ..] = checks else {
        return Some("no check ran: the plan is empty".into());
    };
    let reason = |check: &Check| match &check.outcome {
        Outcome::Skip { reason } => Some(reason.clone()),
        _ => None,
    };
    let why = reason(first).filter(|_| more.iter().all(|check| reason(check).is_some()))?;
    Some(match more.len() {
        0 => format!("no check ran: {} is skipped, as {why}", first.id),
        more => format!("no check ran: {} is skipped, as {why}, and so are {more} more", first.id),
    })
}

/// Returns the text after the word, if `text` begins with it in any case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    let whole = rest.is_empty() || rest.starts_with([' ', ':', '\t']);
    (whole && start.eq_ignore_ascii_case(word)).then(|| rest.trim_start_matches([' ', ':', '\t']))
}

#[cfg(test)]
mod tests;
