//! Verdicts as KTAP while the run goes on.

use std::io::{self, Write};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The kernel keeps the claim.
    Pass,
    /// The kernel breaks it, or the check could not tell.
    Fail,
    /// The claim does not apply to this target.
    Skip,
}

/// Writes a report. Every line is flushed at once, because the reader may be at the end of a
/// console and the next check may crash the kernel.
pub struct Report<W> {
    out: W,
    number: usize,
}

impl<W: Write> Report<W> {
    pub fn begin(mut out: W, planned: usize) -> io::Result<Report<W>> {
        writeln!(out, "KTAP version 1\n1..{planned}")?;
        out.flush()?;
        Ok(Report { out, number: 0 })
    }

    /// Writes notes about the whole run, or about the next result.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        text.lines().try_for_each(|line| writeln!(self.out, "# {}", printable(line)))?;
        self.out.flush()
    }

    /// Writes the result of a check. The message of a skip is its reason.
    pub fn entry(&mut self, id: &str, verdict: Verdict, message: &str) -> io::Result<()> {
        self.number += 1;
        let number = self.number;
        if verdict != Verdict::Skip {
            self.note(message)?;
        }
        match verdict {
            Verdict::Skip => writeln!(self.out, "ok {number} {id} # SKIP {message}")?,
            Verdict::Pass => writeln!(self.out, "ok {number} {id}")?,
            Verdict::Fail => writeln!(self.out, "not ok {number} {id}")?,
        }
        self.out.flush()
    }

    /// Ends the report early, because there can be no more verdicts.
    pub fn bail_out(mut self, why: &str) -> io::Result<()> {
        writeln!(self.out, "Bail out! {}", printable(why))?;
        self.out.flush()
    }
}

/// Replaces characters that would affect a terminal or a line reader.
fn printable(line: &str) -> String {
    let mut text = String::with_capacity(line.len());
    for c in line.chars() {
        if c.is_control() { text.extend(c.escape_default()) } else { text.push(c) }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Report, Verdict};

    fn report(entries: &[(Verdict, &str)]) -> String {
        let mut out = Vec::new();
        let mut report = Report::begin(&mut out, entries.len()).unwrap();
        report.note("kernel: a kernel").unwrap();
        for (verdict, message) in entries {
            report.entry("topic.check", *verdict, message).unwrap();
        }
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ktap_has_plan_diagnostics_and_results() {
        let entries = [(Verdict::Pass, ""), (Verdict::Fail, "why"), (Verdict::Skip, "no such")];
        insta::assert_snapshot!(report(&entries), @r"
        KTAP version 1
        1..3
        # kernel: a kernel
        ok 1 topic.check
        # why
        not ok 2 topic.check
        ok 3 topic.check # SKIP no such
        ");
    }

    #[test]
    fn a_check_cannot_forge_a_result() {
        let forged = "ok 1 topic.check\r\nok 2 topic.check\n\rok 3 x\nBail out!";
        let text = report(&[(Verdict::Pass, forged)]);
        let results: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(results, ["KTAP version 1", "1..1", "ok 1 topic.check"]);
        assert!(!text.contains('\r'));
    }
}
