//! Verdicts as KTAP while the run goes on, or as one JSON document at the end.

use crate::claims::Claim;
use serde::Serialize;
use std::io::{self, Write};

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The kernel's test protocol.
    Ktap,
    /// One JSON document.
    Json,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// The kernel keeps the claim.
    Pass,
    /// The kernel breaks it, or the check could not tell.
    Fail,
    /// The claim does not apply to this target.
    Skip,
}

/// The result of one check.
#[derive(Debug, Serialize)]
pub struct Entry<'a> {
    id: &'a str,
    claim: &'a str,
    source: String,
    /// The verdict.
    pub verdict: Verdict,
    message: &'a str,
    milliseconds: u128,
}

impl<'a> Entry<'a> {
    /// Creates the result of a claim's check.
    #[must_use]
    pub fn new(claim: &'a Claim, verdict: Verdict, message: &'a str, took: u128) -> Entry<'a> {
        let source = claim.place();
        Entry { id: &claim.id, claim: &claim.text, source, verdict, message, milliseconds: took }
    }
}

/// Writes a report. Every line is flushed at once, because the reader may be at the end of a
/// console and the next check may crash the kernel.
#[derive(Debug)]
pub struct Report<W> {
    out: W,
    format: Format,
    notes: Vec<String>,
    entries: Vec<serde_json::Value>,
}

impl<W: Write> Report<W> {
    /// Starts a report of this many checks.
    pub fn begin(mut out: W, format: Format, planned: usize) -> io::Result<Report<W>> {
        if format == Format::Ktap {
            writeln!(out, "KTAP version 1\n1..{planned}")?;
            out.flush()?;
        }
        Ok(Report { out, format, notes: Vec::new(), entries: Vec::new() })
    }

    /// Writes a note about the whole run.
    pub fn note(&mut self, text: &str) -> io::Result<()> {
        self.notes.push(text.to_owned());
        self.diagnostics(text)
    }

    /// Writes the result of a check.
    pub fn entry(&mut self, entry: &Entry<'_>) -> io::Result<()> {
        let number = self.entries.len() + 1;
        self.entries.push(serde_json::to_value(entry)?);
        if self.format == Format::Json {
            return Ok(());
        }
        let Entry { id, message, .. } = entry;
        match entry.verdict {
            Verdict::Skip => writeln!(self.out, "ok {number} {id} # SKIP {message}")?,
            Verdict::Pass => {
                self.diagnostics(message)?;
                writeln!(self.out, "ok {number} {id}")?;
            }
            Verdict::Fail => {
                self.diagnostics(&format!("claim: {}", entry.claim))?;
                self.diagnostics(&format!("source: {}", entry.source))?;
                self.diagnostics(message)?;
                writeln!(self.out, "not ok {number} {id}")?;
            }
        }
        self.out.flush()
    }

    /// Ends the report early, because there can be no more verdicts.
    pub fn bail_out(mut self, why: &str) -> io::Result<()> {
        match self.format {
            Format::Ktap => writeln!(self.out, "Bail out! {}", printable(why))?,
            Format::Json => self.document(Some(why))?,
        }
        self.out.flush()
    }

    /// Ends the report after the last check.
    pub fn end(mut self) -> io::Result<()> {
        if self.format == Format::Json {
            self.document(None)?;
        }
        self.out.flush()
    }

    fn document(&mut self, bail_out: Option<&str>) -> io::Result<()> {
        let document = serde_json::json!({
            "notes": self.notes,
            "checks": self.entries,
            "bail-out": bail_out,
        });
        serde_json::to_writer_pretty(&mut self.out, &document)?;
        writeln!(self.out)
    }

    fn diagnostics(&mut self, text: &str) -> io::Result<()> {
        if self.format == Format::Ktap {
            for line in text.lines() {
                writeln!(self.out, "# {}", printable(line))?;
            }
        }
        Ok(())
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
    use super::{Entry, Format, Report, Verdict};

    fn report(format: Format, entries: &[(Verdict, &str)]) -> String {
        let mut out = Vec::new();
        let mut report = Report::begin(&mut out, format, entries.len()).unwrap();
        report.note("kernel: a kernel").unwrap();
        for (index, (verdict, message)) in entries.iter().enumerate() {
            let id = format!("topic.check-{index}");
            let entry = Entry {
                id: &id,
                claim: "It works.",
                source: "file (section)".to_owned(),
                verdict: *verdict,
                message,
                milliseconds: 1,
            };
            report.entry(&entry).unwrap();
        }
        report.end().unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn ktap_has_plan_diagnostics_and_results() {
        let entries = [(Verdict::Pass, ""), (Verdict::Fail, "why"), (Verdict::Skip, "no such")];
        insta::assert_snapshot!(report(Format::Ktap, &entries), @r"
        KTAP version 1
        1..3
        # kernel: a kernel
        ok 1 topic.check-0
        # claim: It works.
        # source: file (section)
        # why
        not ok 2 topic.check-1
        ok 3 topic.check-2 # SKIP no such
        ");
    }

    #[test]
    fn a_check_cannot_forge_a_result() {
        let forged = "ok 1 topic.check-0\r\nok 2 topic.check-1\n\rok 3 x\nBail out!";
        let text = report(Format::Ktap, &[(Verdict::Pass, forged)]);
        let results: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(results, ["KTAP version 1", "1..1", "ok 1 topic.check-0"]);
        assert!(!text.contains('\r'));
    }

    #[test]
    fn json_is_one_document() {
        let text = report(Format::Json, &[(Verdict::Pass, ""), (Verdict::Fail, "why")]);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["checks"][1]["verdict"], "fail");
        assert_eq!(document["checks"][1]["id"], "topic.check-1");
        assert_eq!(document["bail-out"], serde_json::Value::Null);
    }
}
