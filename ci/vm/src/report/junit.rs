//! JUnit's XML for result collectors: one suite per target. It uses only the schema of Jenkins'
//! xunit plugin, which is the strictest reader. By hand, because it is a
//! few elements, and a test compares them with that schema.

use super::text::unexpected;
use super::{Run, TargetReport, Verdict};
use crate::error::WRITING;
use crate::verdict::{Check, Outcome};
use std::fmt::Write as _;
use std::time::Duration;

/// One test case.
struct Case<'a> {
    name: &'a str,
    time: Duration,
    said: Said,
}

/// The result of a test case: an element with a message and text.
enum Said {
    Nothing,
    Skipped(String),
    Failure(String, String),
    Error(String, String),
}

/// The totals of the cases, which the attributes repeat.
#[derive(Clone, Copy, Default)]
struct Totals {
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

/// The whole report.
pub fn render(run: &Run) -> String {
    let suites: Vec<_> = run.reports.iter().map(|report| (report, cases(report))).collect();
    let all = totals(suites.iter().flat_map(|(_, cases)| cases));
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    writeln!(text, "<testsuites name=\"kcov-vm test\"{}>", attributes(all, run.wall))
        .expect(WRITING);
    for (report, cases) in &suites {
        suite(report, cases, &mut text);
    }
    text.push_str("</testsuites>\n");
    text
}

fn cases(report: &TargetReport) -> Vec<Case<'_>> {
    let whole = |said| Case { name: "verdict", time: report.wall, said };
    match &report.verdict {
        Verdict::Checks(checks) => checks.iter().map(case).collect(),
        Verdict::None(why) => {
            let message = format!("no verdict: {}: {}", why.phase, why.message);
            vec![whole(Said::Error(message, why.to_string()))]
        }
        Verdict::NotRun(what) => {
            let message = format!("not run: {what}");
            vec![whole(if report.required {
                Said::Error(message, String::new())
            } else {
                Said::Skipped(message)
            })]
        }
    }
}

fn case(check: &Check) -> Case<'_> {
    let said = match &check.outcome {
        Outcome::Pass => Said::Nothing,
        Outcome::Fail => {
            let message = check.diagnostics.last().map_or("failed", String::as_str);
            Said::Failure(message.into(), check.diagnostics.join("\n"))
        }
        Outcome::Skip { reason } => Said::Skipped(reason.clone()),
        Outcome::ExpectedFailure { reason } => {
            Said::Skipped(format!("failed as expected: {reason}"))
        }
        Outcome::UnexpectedPass { reason } => Said::Failure(unexpected(reason), String::new()),
    };
    Case { name: &check.id, time: check.time, said }
}

fn totals<'a>(cases: impl IntoIterator<Item = &'a Case<'a>>) -> Totals {
    let mut totals = Totals::default();
    for case in cases {
        totals.tests += 1;
        match case.said {
            Said::Nothing => {}
            Said::Skipped(_) => totals.skipped += 1,
            Said::Failure(..) => totals.failures += 1,
            Said::Error(..) => totals.errors += 1,
        }
    }
    totals
}

/// The attributes that `testsuites` and `testsuite` share.
fn attributes(totals: Totals, time: Duration) -> String {
    let Totals { tests, failures, errors, .. } = totals;
    let time = time.as_secs_f64();
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time:.3}\"")
}

fn suite(report: &TargetReport, cases: &[Case<'_>], text: &mut String) {
    let name = escape(&report.target);
    let totals = totals(cases);
    let (attributes, skipped) = (attributes(totals, report.wall), totals.skipped);
    writeln!(text, "  <testsuite name=\"{name}\"{attributes} skipped=\"{skipped}\">")
        .expect(WRITING);
    text.push_str("    <properties>\n");
    let properties = [
        ("kind", Some(report.kind)),
        ("release", report.release.as_deref()),
        ("kernel", report.kernel.as_deref()),
        ("accelerator", report.accelerator.as_deref()),
    ];
    for (key, value) in properties {
        let Some(value) = value.map(escape) else { continue };
        writeln!(text, "      <property name=\"{key}\" value=\"{value}\"/>").expect(WRITING);
    }
    text.push_str("    </properties>\n");
    for Case { name: id, time, said } in cases {
        let (id, time) = (escape(id), time.as_secs_f64());
        write!(text, "    <testcase classname=\"{name}\" name=\"{id}\" time=\"{time:.3}\"")
            .expect(WRITING);
        let (element, message, body) = match said {
            Said::Nothing => {
                text.push_str("/>\n");
                continue;
            }
            Said::Skipped(message) => ("skipped", message, ""),
            Said::Failure(message, body) => ("failure", message, body.as_str()),
            Said::Error(message, body) => ("error", message, body.as_str()),
        };
        let (message, body) = (escape(message), escape(body));
        writeln!(text, ">\n      <{element} message=\"{message}\">{body}</{element}>")
            .expect(WRITING);
        text.push_str("    </testcase>\n");
    }
    text.push_str("  </testsuite>\n");
}

/// Escapes text for an attribute or an element. XML cannot represent most control characters, so
/// they are shown as in Rust.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            // An attribute would lose these otherwise.
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.extend(c.escape_default());
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn whatever_a_check_says_is_well_formed() {
        assert_eq!(escape("a<b> & \"c\" 'd'"), "a&lt;b&gt; &amp; &quot;c&quot; &apos;d&apos;");
        assert_eq!(escape("1\n\t2"), "1&#10;&#9;2");
        assert_eq!(escape("\u{0}\u{1b}[m\u{fffe}"), "\\u{0}\\u{1b}[m\\u{fffe}");
        assert_eq!(escape("]]>é"), "]]&gt;é");
    }
}
