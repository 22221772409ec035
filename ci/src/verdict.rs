//! Reading a program's results: KTAP, taken strictly.
//!
//! A verdict is what remains when nothing is missing: one plan, before all
//! results; each planned result once, in order; an exit status that agrees.
//! Everything else is an [`Err`] that says what is wrong, never a pass.

use kcov_vm_guest::protocol::Exit;
use serde::Serialize;

/// One result.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
pub struct Check {
    /// The check's id.
    pub id: String,
    /// How it went.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The diagnostics before its result.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<String>,
}

/// How a check went.
#[derive(Clone, Debug, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "lowercase")]
pub enum Outcome {
    /// It ran and passed.
    Pass,
    /// It ran and failed.
    Fail,
    /// It did not run.
    Skip {
        /// Why it did not.
        reason: String,
    },
}

/// How many checks went which way.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// How many passed.
    pub passed: usize,
    /// How many failed.
    pub failed: usize,
    /// How many did not run.
    pub skipped: usize,
}

impl Counts {
    /// Counts results.
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

/// Reads results as they come.
#[derive(Clone, Debug, Default)]
pub struct Reader {
    partial: Vec<u8>,
    plan: Option<usize>,
    checks: Vec<Check>,
    diagnostics: Vec<String>,
    /// The first thing that was wrong.
    wrong: Option<String>,
}

impl Reader {
    /// Takes bytes of the program's standard output.
    pub fn feed(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            if byte == b'\n' {
                let line = std::mem::take(&mut self.partial);
                self.line(&String::from_utf8_lossy(&line));
            } else {
                self.partial.push(byte);
            }
        }
    }

    /// The results so far, and how many are planned.
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
            // `# text`, or what a check wrote by itself.
            let text = line.strip_prefix('#').map_or(line, |text| text.trim_start());
            self.diagnostics.push(text.to_string());
        }
    }

    fn planned(&mut self, count: &str) {
        let count = count.split('#').next().unwrap_or_default().trim();
        match (count.parse(), self.plan) {
            (Ok(_), Some(_)) => self.wrong("a second plan was announced".into()),
            (Ok(count), None) => self.plan = Some(count),
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
            return self.wrong(format!("two results are called {id}"));
        }
        let directive = directive.trim();
        let outcome = match (strip_word(directive, "SKIP"), ok) {
            (Some(""), _) => return self.wrong(format!("{id} is skipped without a reason")),
            (Some(_), false) => return self.wrong(format!("{id} is `not ok` and skipped at once")),
            (Some(reason), true) => Outcome::Skip { reason: reason.to_string() },
            (None, true) => Outcome::Pass,
            (None, false) => Outcome::Fail,
        };
        self.checks.push(Check { id, outcome, diagnostics });
    }

    fn wrong(&mut self, what: String) {
        self.wrong.get_or_insert(what);
    }

    /// Judges, after the program's end.
    pub fn finish(mut self, exit: Exit) -> Result<Vec<Check>, String> {
        if !self.partial.is_empty() {
            let line = std::mem::take(&mut self.partial);
            self.line(&String::from_utf8_lossy(&line));
        }
        if let Some(wrong) = self.wrong {
            return Err(wrong);
        }
        let ended = match exit {
            Exit::Status(status) => format!("the program exited with status {status}"),
            Exit::Signal(signal) => format!("the program was killed by signal {signal}"),
        };
        let Some(plan) = self.plan else {
            return Err(format!("no plan was announced; {ended}"));
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
            _ => Err(format!("{ended}, which does not agree with {failed} failed of {plan}")),
        }
    }
}

/// What follows the word, if `text` begins with it in any case.
fn strip_word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(word.len())?;
    let whole = rest.is_empty() || rest.starts_with([' ', ':', '\t']);
    (whole && start.eq_ignore_ascii_case(word)).then(|| rest.trim_start_matches([' ', ':', '\t']))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(text: &str, status: i32) -> Result<Vec<Check>, String> {
        let mut reader = Reader::default();
        reader.feed(text.as_bytes());
        reader.finish(Exit::Status(status))
    }

    #[track_caller]
    fn refused(text: &str, status: i32, why: &str) {
        let message = judge(text, status).expect_err("must not be a verdict");
        assert!(message.contains(why), "{message}");
    }

    #[test]
    fn whole_results_are_a_verdict() {
        let text =
            "KTAP version 1\n1..3\n# why\nnot ok 1 a.b\nok 2 - c # SKIP no net\nok 3 d # 3 ms";
        let checks = judge(text, 1).expect("whole");
        assert_eq!(Counts::of(&checks), Counts { passed: 1, failed: 1, skipped: 1 });
        assert_eq!(checks[0].diagnostics, ["why"]);
        assert_eq!(checks[1].outcome, Outcome::Skip { reason: "no net".into() });
        assert_eq!(checks[2].id, "d");
        assert!(judge("1..1\nok 1 a\n", 0).is_ok());
    }

    #[test]
    fn bytes_may_come_in_any_pieces() {
        let text = "KTAP version 1\n1..2\nok 1 a\nok 2 b\n";
        for size in 1..text.len() {
            let mut reader = Reader::default();
            text.as_bytes().chunks(size).for_each(|piece| reader.feed(piece));
            assert_eq!(reader.finish(Exit::Status(0)).expect("whole").len(), 2);
        }
    }

    #[test]
    fn the_plan_is_kept() {
        refused("1..3\nok 1 a\n", 0, "results 2 to 3 of 3 are missing");
        refused("1..2\nok 1 a\n", 0, "result 2 of 2 is missing");
        refused("1..1\nok 1 a\nok 1 a\n", 0, "result 1 (a) came twice");
        refused("1..2\nok 2 b\nok 1 a\n", 0, "result 2 (b) came where 1 was due");
        refused("1..1\nok 1 a\nok 2 b\n", 0, "result 2 (b) is not in the plan");
        refused("1..2\nok 1 a\nok 2 a\n", 0, "two results are called a");
        refused("ok 1 a\n", 0, "before the plan");
        refused("ok 1 a\n1..1\n", 0, "before the plan");
        refused("1..1\n1..1\nok 1 a\n", 0, "a second plan");
        refused("1..x\nok 1 a\n", 0, "cannot read the plan");
        refused("hello\n", 0, "no plan was announced");
        refused("", 101, "no plan was announced; the program exited with status 101");
    }

    #[test]
    fn bailing_out_is_quoted() {
        refused("1..2\nok 1 a\nBail out! no /dev/kcov\n", 1, "bailed out: no /dev/kcov");
    }

    #[test]
    fn the_exit_status_has_to_agree() {
        refused("1..1\nok 1 a\n", 1, "does not agree with 0 failed");
        refused("1..1\nnot ok 1 a\n", 0, "does not agree with 1 failed");
        refused("1..1\nok 1 a\n", 101, "status 101");
        let mut reader = Reader::default();
        reader.feed(b"1..1\nok 1 a\n");
        assert!(reader.finish(Exit::Signal(9)).is_err_and(|why| why.contains("signal 9")));
    }

    #[test]
    fn skips_need_a_reason() {
        refused("1..1\nok 1 a # SKIP\n", 0, "skipped without a reason");
        refused("1..1\nnot ok 1 a # SKIP x\n", 1, "`not ok` and skipped");
        let checks = judge("1..1\nok 1 a # Skipped later\n", 0).expect("another word");
        assert_eq!(checks[0].outcome, Outcome::Pass);
    }

    #[test]
    fn lines_inside_diagnostics_are_not_results() {
        let text = "1..2\n# ok 1 a\n# Bail out! x\n  ok 1 a\n#1..9\nnot ok 1 a\nok 2 b\n";
        let checks = judge(text, 1).expect("whole");
        assert_eq!(checks[0].outcome, Outcome::Fail);
        assert_eq!(checks[0].diagnostics, ["ok 1 a", "Bail out! x", "  ok 1 a", "1..9"]);
    }

    #[test]
    fn results_need_a_number_and_an_id() {
        refused("1..1\nok a\n", 0, "no number");
        refused("1..1\nok 1\n", 0, "no id");
        refused("1..1\nok 1 # SKIP x\n", 0, "no id");
    }
}
