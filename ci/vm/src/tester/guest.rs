//! Runs the suite in one guest and reads its results.

use super::Plan;
use crate::console::classify;
use crate::error::{Error, Phase, Result, Unavailable};
use crate::guest::{Listener, Stream};
use crate::progress::Step;
use crate::session::Ready;
use crate::system::System;
use crate::target::Target;
use crate::verdict::{Check, Reader};
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

/// The maximum number of lines of the kernel's complaint in a message.
const MOST_LINES: usize = 30;

/// The results of a guest.
pub struct Heard {
    pub checks: Vec<Check>,
    pub release: Option<String>,
    pub times: [(&'static str, Duration); 2],
}

/// Runs the program in one guest, with these checks if any are named.
pub fn run(
    plan: &Plan<'_>,
    target: &Target,
    ready: &Ready<'_>,
    ids: &[String],
    step: &Step,
) -> Result<Heard> {
    let Plan { session, options, .. } = plan;
    let calls = session.calls(ready)?;
    let task = match &options.program {
        Some(file) => session.task(target, file, options.arguments.clone()),
        None => {
            let suite = session.programs.suite_for(target.triple())?;
            let mut arguments = suite_arguments(target, &options.suite, !calls.is_empty());
            if options.fail_fast {
                arguments.push("--fail-fast".into());
            }
            arguments.extend(ids.iter().map(OsString::from));
            session.task(target, &suite, arguments)
        }
    };
    let task = task.map_err(|why| Error::unavailable(Phase::Image, why))?.knowing(calls);
    let mut ear = Ear {
        reader: Reader::default(),
        errors: Vec::new(),
        release: None,
        step,
        verbose: plan.verbose,
        system: target.kind.system(),
        complaint: Vec::new(),
    };
    let finished = session.run(ready, task, &mut ear);
    let Ear { reader, errors, release, complaint, .. } = ear;
    // The program's standard error may explain its results.
    let _ = fs::write(ready.logs.join("stderr.log"), &errors);
    let finished = finished.map_err(|error| match error {
        // Logs may be lost, and the kernel's own words say the most.
        Error::Unavailable(mut failure) if !complaint.is_empty() => {
            if let Some(check) = reader.progress().0.last() {
                failure.detail.push(format!("the last result: {}", check.id));
            }
            failure.detail.extend(complaint);
            failure.into()
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
    Ok(Heard { checks, release, times })
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
    release: Option<String>,
    step: &'a Step,
    verbose: bool,
    system: System,
    /// The kernel's first complaint, and the lines after it.
    complaint: Vec<String>,
}

impl Listener for Ear<'_> {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        if stream == Stream::Err {
            self.errors.extend_from_slice(bytes);
            return;
        }
        self.reader.feed(bytes);
        if let (checks, Some(plan)) = self.reader.progress() {
            let last = checks.last().map_or("", |check| check.id.as_str());
            self.step.note(&format!("{}/{plan} {last}", checks.len()));
        }
    }

    fn booted(&mut self, release: &str) {
        self.release = Some(release.to_string());
    }

    fn console(&mut self, line: &str) {
        if self.verbose {
            eprintln!("[kernel] {line}");
        }
        let begins = || classify(line, self.system).is_some();
        if self.complaint.len() < MOST_LINES && (!self.complaint.is_empty() || begins()) {
            self.complaint.push(line.trim_end().to_string());
        }
    }
}
