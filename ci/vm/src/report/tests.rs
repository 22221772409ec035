//! All formats of one report.

use super::*;
use crate::error::Phase;
use std::collections::BTreeSet;

fn check(id: &str, outcome: Outcome, diagnostics: &[&str]) -> Check {
    Check {
        id: id.into(),
        outcome,
        diagnostics: diagnostics.iter().map(ToString::to_string).collect(),
        time: Duration::from_millis(250),
    }
}

fn report(name: &str, verdict: Verdict) -> TargetReport {
    TargetReport {
        target: name.into(),
        kind: "uml",
        release: matches!(verdict, Verdict::Checks(_)).then(|| "7.3.4".into()),
        kernel: None,
        accelerator: None,
        verdict,
        required: true,
        times: vec![("boot", Duration::from_millis(1500))],
        wall: Duration::from_secs(2),
        logs: Some("/l".into()),
    }
}

fn run() -> Run {
    let skip = || Outcome::Skip { reason: "no net".into() };
    let first = vec![
        check("x", Outcome::Pass, &["unseen"]),
        check("y", Outcome::Fail, &["1 is not <2>"]),
        check("z", skip(), &[]),
    ];
    let failure = Unavailable::new(Phase::Boot, "no").detail(vec!["more".into()]);
    let mut not_run = report("d", Verdict::NotRun("give a kernel".into()));
    not_run.required = false;
    let other = report("c-7", Verdict::Checks(vec![check("x", Outcome::Pass, &[])]));
    Run {
        reports: vec![
            report("a", Verdict::Checks(first)),
            report("b", Verdict::None(failure)),
            other,
            not_run,
        ],
        wall: Duration::from_secs(3),
    }
}

#[test]
fn people_see_what_failed_and_why() {
    let expected = "\
a: 7.3.4 (uml)
    ok   x
    FAIL y
         1 is not <2>
    skip z: no net
a: 1 passed, 1 failed, 1 skipped in 2.0 s; logs: /l
a: boot 1.50 s
";
    assert_eq!(text(&run().reports[0], true, false), expected);
    // A brief report has only what is red.
    let expected = "\
a: 7.3.4 (uml)
    FAIL y
         1 is not <2>
a: 1 passed, 1 failed, 1 skipped in 2.0 s; logs: /l
";
    assert_eq!(text(&run().reports[0], false, true), expected);
    let expected = "\
b: not booted (uml)
b: no verdict: boot: no
    more
";
    assert_eq!(text(&run().reports[1], false, true), expected);
}

#[test]
fn the_results_of_several_targets_come_again_at_the_end() {
    let expected = "
a: 1 passed, 1 failed, 1 skipped in 2.0 s; logs: /l
b: no verdict: boot: no
    more
c-7: 1 passed, 0 failed, 0 skipped in 2.0 s; logs: /l
d: not run: give a kernel
3.0 s
";
    assert_eq!(run().summary(), expected);
}

#[test]
fn junit_has_a_suite_for_each_target() {
    let text = run().render(Format::Junit, false);
    let expected = r#"<?xml version="1.0" encoding="UTF-8"?>
<testsuites name="kcov-vm test" tests="6" failures="1" errors="1" time="3.000">
  <testsuite name="a" tests="3" failures="1" errors="0" time="2.000" skipped="1">
    <properties>
      <property name="kind" value="uml"/>
      <property name="release" value="7.3.4"/>
    </properties>
    <testcase classname="a" name="x" time="0.250"/>
    <testcase classname="a" name="y" time="0.250">
      <failure message="1 is not &lt;2&gt;">1 is not &lt;2&gt;</failure>
    </testcase>
    <testcase classname="a" name="z" time="0.250">
      <skipped message="no net"></skipped>
    </testcase>
"#;
    assert!(text.starts_with(expected), "{text}");
    let error = r#"<error message="no verdict: boot: no">boot: no&#10;    more</error>"#;
    assert!(text.contains(error), "{text}");
    assert!(text.contains(r#"<skipped message="not run: give a kernel">"#), "{text}");
    assert!(text.ends_with("  </testsuite>\n</testsuites>\n"), "{text}");
}

#[test]
fn json_says_the_same() {
    let text = run().render(Format::Json, false);
    let value: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(value["version"], 2);
    assert_eq!(value["targets"][0]["verdict"], "failed");
    assert_eq!(value["targets"][0]["checks"][2]["reason"], "no net");
    assert_eq!(value["targets"][0]["counts"]["skipped"], 1);
    assert_eq!(value["targets"][1]["verdict"], "none");
    assert_eq!(value["targets"][1]["failure"]["phase"], "boot");
    assert_eq!(value["targets"][3]["verdict"], "not run");
}

/// The page names exactly these keys.
#[test]
fn the_book_documents_the_keys() {
    fn keys(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(object) => object.iter().for_each(|(key, value)| {
                found.insert(key.clone());
                // The run chooses the names in there.
                if key != "steps" {
                    keys(value, found);
                }
            }),
            Value::Array(array) => array.iter().for_each(|value| keys(value, found)),
            _ => {}
        }
    }
    let value = serde_json::from_str(&run().render(Format::Json, false)).expect("JSON");
    let mut found = BTreeSet::new();
    keys(&value, &mut found);
    let page = include_str!("../../../../docs/src/reports.md");
    let (_, json) = page.split_once("## JSON").expect("the section");
    let (json, _) = json.split_once("\n## ").expect("another section");
    let documented: BTreeSet<String> = json
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once('`'))
        .map(|(key, _)| key.to_string())
        .collect();
    assert_eq!(documented, found);
}

#[test]
fn the_worst_target_decides() {
    let mut all = run();
    assert_eq!(all.status(), 69);
    all.reports.remove(1);
    assert_eq!(all.status(), 1);
    all.reports.remove(0);
    assert_eq!(all.status(), 0, "what was not run does not count");
    all.reports[1].required = true;
    assert_eq!(all.status(), 69, "unless it was named");
    all.reports.truncate(0);
    assert_eq!(all.status(), 69, "nothing passes for want of a run");
}
