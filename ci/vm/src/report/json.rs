//! One JSON document.

use super::{Run, TargetReport, Verdict};
use crate::verdict::Counts;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Raise it when a key is renamed, removed or changes its meaning, but not for a new key.
/// docs/src/reports.md documents the keys.
const VERSION: u32 = 2;

/// The whole report.
pub fn render(run: &Run) -> String {
    let targets: Vec<_> = run.reports.iter().map(target).collect();
    let seconds = run.wall.as_secs_f64();
    let document = json!({ "version": VERSION, "targets": targets, "seconds": seconds });
    format!("{document:#}\n")
}

fn target(report: &TargetReport) -> Value {
    let (checks, counts, failure) = match &report.verdict {
        Verdict::Checks(checks) => (json!(checks), json!(Counts::of(checks)), Value::Null),
        Verdict::None(why) => {
            let failure = json!({ "phase": why.phase.to_string(), "message": why.message });
            (Value::Null, Value::Null, failure)
        }
        Verdict::NotRun(what) => (Value::Null, Value::Null, json!({ "message": what })),
    };
    let times = report.times.iter().map(|(step, time)| (*step, time.as_secs_f64()));
    json!({
        "target": report.target,
        "kind": report.kind,
        "release": report.release,
        "kernel": report.kernel,
        "accelerator": report.accelerator,
        "verdict": report.word(),
        "counts": counts,
        "checks": checks,
        "failure": failure,
        "seconds": report.wall.as_secs_f64(),
        "steps": times.collect::<BTreeMap<_, _>>(),
        "logs": report.logs,
    })
}
