//! What a test run has to say, in three forms.

use crate::error::{STATUS_FAILED, STATUS_PASSED, STATUS_UNAVAILABLE, Unavailable};
use crate::verdict::{Check, Counts, Outcome};
use serde_json::{Value, json};
use std::fmt::Write as _;
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
    /// The results, or why there are none.
    pub verdict: Result<Vec<Check>, Unavailable>,
    /// How long the steps took.
    pub times: Vec<(&'static str, Duration)>,
    /// How long all took.
    pub wall: Duration,
    /// Where the logs are.
    pub logs: Option<PathBuf>,
}

/// The form of a report.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, clap::ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One test with subtests per target.
    Ktap,
    /// For programs.
    Json,
}

impl TargetReport {
    /// The exit status that this target alone would give.
    pub fn status(&self) -> u8 {
        match &self.verdict {
            Err(_) => STATUS_UNAVAILABLE,
            Ok(checks) if Counts::of(checks).failed > 0 => STATUS_FAILED,
            Ok(_) => STATUS_PASSED,
        }
    }

    /// For people. `times` adds how long the steps took.
    pub fn text(&self, times: bool) -> String {
        let mut text = self.target.clone();
        match &self.release {
            Some(release) => write!(text, ": Linux {release}"),
            None => write!(text, ": not booted"),
        }
        .expect(WRITING);
        write!(text, " ({}", self.kind).expect(WRITING);
        if let Some(accelerator) = &self.accelerator {
            write!(text, ", {accelerator}").expect(WRITING);
        }
        if let Some(kernel) = &self.kernel {
            write!(text, ", {kernel}").expect(WRITING);
        }
        text.push_str(")\n");
        for check in self.verdict.iter().flatten() {
            let (word, reason) = match &check.outcome {
                Outcome::Pass => ("ok  ", None),
                Outcome::Fail => ("FAIL", None),
                Outcome::Skip { reason } => ("skip", Some(reason)),
            };
            write!(text, "    {word} {}", check.id).expect(WRITING);
            if let Some(reason) = reason {
                write!(text, ": {reason}").expect(WRITING);
            }
            text.push('\n');
            if check.outcome == Outcome::Fail {
                for line in &check.diagnostics {
                    writeln!(text, "         {line}").expect(WRITING);
                }
            }
        }
        match &self.verdict {
            Ok(checks) => {
                let Counts { passed, failed, skipped } = Counts::of(checks);
                write!(
                    text,
                    "{}: {passed} passed, {failed} failed, {skipped} skipped in {:.1} s",
                    self.target,
                    self.wall.as_secs_f32()
                )
                .expect(WRITING);
                if let Some(logs) = &self.logs {
                    write!(text, "; logs: {}", logs.display()).expect(WRITING);
                }
                text.push('\n');
            }
            Err(failure) => {
                writeln!(text, "{}: no verdict: {failure}", self.target).expect(WRITING);
            }
        }
        if times {
            let times: Vec<_> = self
                .times
                .iter()
                .map(|(step, time)| format!("{step} {:.2} s", time.as_secs_f32()))
                .collect();
            writeln!(text, "{}: {}", self.target, times.join(", ")).expect(WRITING);
        }
        text
    }

    fn json(&self) -> Value {
        let (verdict, checks, counts, failure) = match &self.verdict {
            Ok(checks) => {
                let word = if self.status() == STATUS_PASSED { "passed" } else { "failed" };
                (word, json!(checks), json!(Counts::of(checks)), Value::Null)
            }
            Err(failure) => {
                let phase = failure.phase.to_string();
                let failure = json!({ "phase": phase, "message": failure.message });
                ("none", Value::Null, Value::Null, failure)
            }
        };
        let times: serde_json::Map<_, _> = self
            .times
            .iter()
            .map(|(step, time)| ((*step).to_string(), json!(time.as_secs_f64())))
            .collect();
        json!({
            "target": self.target,
            "kind": self.kind,
            "release": self.release,
            "kernel": self.kernel,
            "accelerator": self.accelerator,
            "verdict": verdict,
            "counts": counts,
            "checks": checks,
            "failure": failure,
            "seconds": self.wall.as_secs_f64(),
            "steps": times,
            "logs": self.logs,
        })
    }

    fn ktap(&self, number: usize, text: &mut String) {
        match &self.verdict {
            Ok(checks) => {
                writeln!(text, "    KTAP version 1\n    1..{}", checks.len()).expect(WRITING);
                for (index, check) in checks.iter().enumerate() {
                    for line in &check.diagnostics {
                        writeln!(text, "    # {line}").expect(WRITING);
                    }
                    let word = if check.outcome == Outcome::Fail { "not ok" } else { "ok" };
                    write!(text, "    {word} {} {}", index + 1, check.id).expect(WRITING);
                    if let Outcome::Skip { reason } = &check.outcome {
                        write!(text, " # SKIP {reason}").expect(WRITING);
                    }
                    text.push('\n');
                }
            }
            Err(failure) => {
                for line in format!("no verdict: {failure}").lines() {
                    writeln!(text, "# {}", line.trim()).expect(WRITING);
                }
            }
        }
        let word = if self.status() == STATUS_PASSED { "ok" } else { "not ok" };
        writeln!(text, "{word} {number} {}", self.target).expect(WRITING);
    }
}

const WRITING: &str = "writing to a string cannot fail";

/// The report on all targets. `times` is for people only.
pub fn render(reports: &[TargetReport], format: Format, times: bool) -> String {
    match format {
        Format::Text => reports.iter().map(|report| report.text(times)).collect(),
        Format::Json => {
            let targets: Vec<_> = reports.iter().map(TargetReport::json).collect();
            format!("{:#}\n", json!({ "targets": targets }))
        }
        Format::Ktap => {
            let mut text = format!("KTAP version 1\n1..{}\n", reports.len());
            for (index, report) in reports.iter().enumerate() {
                report.ktap(index + 1, &mut text);
            }
            text
        }
    }
}

/// The worst of the targets' exit statuses.
pub fn status(reports: &[TargetReport]) -> u8 {
    // 69 beats 1 beats 0, so the largest is the worst.
    reports.iter().map(TargetReport::status).max().unwrap_or(STATUS_PASSED)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Phase;

    fn report(name: &str, verdict: Result<Vec<Check>, Unavailable>) -> TargetReport {
        TargetReport {
            target: name.into(),
            kind: "uml",
            release: verdict.is_ok().then(|| "7.3.4".into()),
            kernel: None,
            accelerator: None,
            verdict,
            times: vec![("boot", Duration::from_millis(1500))],
            wall: Duration::from_secs(2),
            logs: Some("/l".into()),
        }
    }

    fn reports() -> Vec<TargetReport> {
        let check = |id: &str, outcome, diagnostics: &[&str]| Check {
            id: id.into(),
            outcome,
            diagnostics: diagnostics.iter().map(ToString::to_string).collect(),
        };
        vec![
            report(
                "a",
                Ok(vec![
                    check("x", Outcome::Pass, &["unseen"]),
                    check("y", Outcome::Fail, &["1 is not 2"]),
                    check("z", Outcome::Skip { reason: "no net".into() }, &[]),
                ]),
            ),
            report("b", Err(Unavailable::new(Phase::Boot, "no").detail(vec!["more".into()]))),
        ]
    }

    #[test]
    fn people_see_what_failed_and_why() {
        let expected = "\
a: Linux 7.3.4 (uml)
    ok   x
    FAIL y
         1 is not 2
    skip z: no net
a: 1 passed, 1 failed, 1 skipped in 2.0 s; logs: /l
a: boot 1.50 s
b: not booted (uml)
b: no verdict: boot: no
    more
b: boot 1.50 s
";
        assert_eq!(render(&reports(), Format::Text, true), expected);
    }

    #[test]
    fn ktap_nests_targets() {
        let expected = "\
KTAP version 1
1..2
    KTAP version 1
    1..3
    # unseen
    ok 1 x
    # 1 is not 2
    not ok 2 y
    ok 3 z # SKIP no net
not ok 1 a
# no verdict: boot: no
# more
not ok 2 b
";
        assert_eq!(render(&reports(), Format::Ktap, true), expected);
    }

    #[test]
    fn json_says_the_same() {
        let text = render(&reports(), Format::Json, false);
        let value: Value = serde_json::from_str(&text).expect("JSON");
        assert_eq!(value["targets"][0]["verdict"], "failed");
        assert_eq!(value["targets"][0]["checks"][2]["reason"], "no net");
        assert_eq!(value["targets"][0]["counts"]["skipped"], 1);
        assert_eq!(value["targets"][1]["verdict"], "none");
        assert_eq!(value["targets"][1]["failure"]["phase"], "boot");
    }

    #[test]
    fn the_worst_target_decides() {
        let all = reports();
        assert_eq!((status(&all), status(&all[..1]), status(&[])), (69, 1, 0));
    }
}
