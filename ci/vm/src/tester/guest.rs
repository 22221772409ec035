//! Runs the suite in one guest and reads its results.

use super::Plan;
use crate::error::{Error, Phase, Result, Unavailable};
use crate::guest::{Listener, Stream};
use crate::session::Ready;
use crate::target::Target;
use crate::verdict::{Check, Reader};
use std::ffi::OsString;
use std::fs;
use std::sync::OnceLock;
use std::time::Duration;

/// The results of a guest.
pub struct Heard {
    pub checks: Vec<Check>,
    pub times: [(&'static str, Duration); 2],
}

/// Runs the program in one guest, with these checks if any are named. Sets `release` as soon as the
/// guest has booted.
pub fn run(
    plan: &Plan<'_>,
    target: &Target,
    ready: &Ready<'_>,
    ids: &[String],
    release: &OnceLock<String>,
) -> Result<Heard> {
    let Plan { session, options, .. } = plan;
    let calls = session.calls(ready)?;
    let task = match &options.program {
        Some(file) => session.task(target, file, options.arguments.clone(), Vec::new()),
        None => {
            let suite = session.programs.suite_for(target.triple())?;
            let mut arguments = suite_arguments(target, &options.suite, !calls.is_empty());
            arguments.extend(ids.iter().map(OsString::from));
            session.task(target, &suite, arguments, Vec::new())
        }
    };
    let task = task.map_err(|why| Error::unavailable(Phase::Image, why))?.knowing(calls);
    let reader = Reader::default();
    let mut ear = Ear { reader, errors: Vec::new(), release, verbose: plan.verbose };
    let finished = session.run(ready, task, &mut ear);
    let Ear { reader, errors, .. } = ear;
    // The program's standard error may explain its results.
    let _ = fs::write(ready.logs.join("stderr.log"), &errors);
    let finished = finished.map_err(|error| match error {
        Error::Unavailable(failure) => {
            let all = plan.suite(target).filter(|_| options.suite.is_empty());
            let order = all.map_or(&[][..], |suite| if ids.is_empty() { &suite.ids } else { ids });
            let mut detail = so_far(&reader, order);
            detail.extend(failure.detail.iter().cloned());
            failure.detail(detail).into()
        }
        error => error,
    })?;
    let times = [("boot", finished.boot), ("program", finished.program)];
    let wrong = |why: String| {
        let text = String::from_utf8_lossy(&errors);
        let mut last: Vec<_> =
            text.lines().rev().take(5).map(|line| format!("its standard error: {line}")).collect();
        last.reverse();
        Unavailable::new(Phase::Verdict, why).detail(last).logs(&ready.logs)
    };
    let checks = reader.finish(finished.ended()?).map_err(wrong)?;
    Ok(Heard { checks, times })
}

/// The progress of a run without a verdict: the checks that failed, the last result, and the check
/// that ran, if the order of the checks is known.
fn so_far(reader: &Reader, order: &[String]) -> Vec<String> {
    let (checks, plan) = reader.progress();
    let mut said = Vec::new();
    for check in checks.iter().filter(|check| check.outcome.is_red()) {
        said.push(format!("failed before: {}", check.id));
        said.extend(check.diagnostics.iter().map(|line| format!("    {line}")));
    }
    let last = checks.last();
    said.extend(last.map(|check| match plan {
        Some(plan) => format!("the last result: {} ({} of {plan})", check.id, checks.len()),
        None => format!("the last result: {}", check.id),
    }));
    let place = last.map(|last| order.iter().position(|id| *id == last.id));
    let next = place.map_or(Some(0), |place| Some(place? + 1)).and_then(|at| order.get(at));
    said.extend(next.filter(|_| plan.is_some()).map(|id| format!("the check that ran: {id}")));
    said
}

/// Returns the suite's arguments: these words, or else `run`. Without a list of calls, the target's
/// word for it is left out.
pub fn suite_arguments(target: &Target, words: &[String], calls: bool) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = match words {
        [] => ["run", "--format", "ktap"].map(OsString::from).into(),
        words => words.iter().map(OsString::from).collect(),
    };
    let unsaid = target.calls.as_ref().filter(|_| !calls).map(|calls| &calls.word);
    let said: Vec<&str> =
        target.declares.iter().filter(|word| Some(*word) != unsaid).map(String::as_str).collect();
    arguments.extend(["--declare".into(), said.join(",").into()]);
    arguments
}

/// Receives results as they arrive.
struct Ear<'a> {
    reader: Reader,
    errors: Vec<u8>,
    release: &'a OnceLock<String>,
    verbose: bool,
}

impl Listener for Ear<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Err {
            self.errors.extend_from_slice(bytes);
            return;
        }
        self.reader.feed(bytes);
    }

    fn booted(&mut self, release: &str) {
        let _ = self.release.set(release.to_string());
    }

    fn console(&mut self, line: &str) {
        if self.verbose {
            eprintln!("[kernel] {line}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_check_that_ran_follows_the_last_result() {
        let order = ["a", "b", "c"].map(String::from);
        let said = |text: &str, order: &[String]| {
            let mut reader = Reader::default();
            reader.feed(text.as_bytes());
            so_far(&reader, order)
        };
        assert_eq!(said("", &order), [""; 0]);
        assert_eq!(said("1..3\n", &order), ["the check that ran: a"]);
        let failed = "1..3\n# no\nnot ok 1 a\nok 2 b\n";
        let words =
            ["failed before: a", "    no", "the last result: b (2 of 3)", "the check that ran: c"];
        assert_eq!(said(failed, &order), words);
        assert_eq!(said(failed, &[]), words[..3]);
        assert_eq!(said("1..3\nok 1 a\nok 2 b\nok 3 c\n", &order), ["the last result: c (3 of 3)"]);
    }
}
