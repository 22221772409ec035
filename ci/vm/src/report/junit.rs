//! JUnit's XML for result collectors: one suite per target. By hand, because it uses only the schema
//! of Jenkins' xunit plugin, which is the strictest reader; libraries add attributes.

use super::{Run, TargetReport, Verdict};
use crate::verdict::{Check, Outcome};
use std::time::Duration;

/// One test case: its name, its time, and unless it passed an element with a message and text.
type Case<'a> = (&'a str, Duration, Option<(&'static str, String, String)>);

/// The whole report.
pub fn render(run: &Run) -> String {
    let suites: Vec<_> = run.reports.iter().map(|report| (report, cases(report))).collect();
    let attributes = attributes(suites.iter().flat_map(|(_, cases)| cases), run.wall);
    let suites: String = suites.iter().map(|(report, cases)| suite(report, cases)).collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"kcov-vm test\"{attributes}>\n{suites}</testsuites>\n"
    )
}

fn cases(report: &TargetReport) -> Vec<Case<'_>> {
    let whole = |said| vec![("verdict", report.wall, Some(said))];
    match &report.verdict {
        Verdict::Checks(checks) => checks.iter().map(case).collect(),
        Verdict::None(why) => {
            let message = format!("no verdict: {}: {}", why.phase, why.message);
            whole(("error", message, why.to_string()))
        }
        Verdict::NotRun(what) => {
            let element = if report.required { "error" } else { "skipped" };
            whole((element, format!("not run: {what}"), String::new()))
        }
    }
}

fn case(check: &Check) -> Case<'_> {
    let said = match &check.outcome {
        Outcome::Pass => None,
        Outcome::Fail => {
            let message = check.diagnostics.last().map_or("failed", String::as_str);
            Some(("failure", message.into(), check.diagnostics.join("\n")))
        }
        Outcome::Skip { reason } => Some(("skipped", reason.clone(), String::new())),
    };
    (&check.id, check.time, said)
}

fn count<'a>(cases: impl Iterator<Item = &'a Case<'a>>, element: &str) -> usize {
    cases.filter(|(.., said)| said.as_ref().is_some_and(|said| said.0 == element)).count()
}

/// The attributes that `testsuites` and `testsuite` share.
fn attributes<'a>(cases: impl Iterator<Item = &'a Case<'a>> + Clone, time: Duration) -> String {
    let (tests, failures) = (cases.clone().count(), count(cases.clone(), "failure"));
    let (errors, time) = (count(cases, "error"), time.as_secs_f64());
    format!(" tests=\"{tests}\" failures=\"{failures}\" errors=\"{errors}\" time=\"{time:.3}\"")
}

fn suite(report: &TargetReport, cases: &[Case<'_>]) -> String {
    let name = escape(&report.target);
    let attributes = attributes(cases.iter(), report.wall);
    let skipped = count(cases.iter(), "skipped");
    let mut text = format!("  <testsuite name=\"{name}\"{attributes} skipped=\"{skipped}\">\n");
    text += "    <properties>\n";
    let properties = [
        ("kind", Some(report.kind)),
        ("release", report.release.as_deref()),
        ("kernel", report.kernel.as_deref()),
        ("accelerator", report.accelerator.as_deref()),
    ];
    for (key, value) in properties {
        let Some(value) = value.map(escape) else { continue };
        text += &format!("      <property name=\"{key}\" value=\"{value}\"/>\n");
    }
    text += "    </properties>\n";
    for (id, time, said) in cases {
        let (id, time) = (escape(id), time.as_secs_f64());
        text += &format!("    <testcase classname=\"{name}\" name=\"{id}\" time=\"{time:.3}\"");
        let Some((element, message, body)) = said else {
            text += "/>\n";
            continue;
        };
        let (message, body) = (escape(message), escape(body));
        text += &format!(">\n      <{element} message=\"{message}\">{body}</{element}>\n");
        text += "    </testcase>\n";
    }
    text + "  </testsuite>\n"
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
        assert_eq!(escape("a<b> & \"c\" ]]>é"), "a&lt;b&gt; &amp; &quot;c&quot; ]]&gt;é");
        assert_eq!(escape("1\n\t2\u{0}\u{1b}[m\u{fffe}"), "1&#10;&#9;2\\u{0}\\u{1b}[m\\u{fffe}");
    }
}
