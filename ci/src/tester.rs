//! `test`: runs a KTAP program on targets and judges what it says.

use crate::cli::TestOptions;
use crate::commands::{complain, print};
use crate::error::{Error, Phase, Result, Unavailable};
use crate::guest::{Listener, Stream};
use crate::progress::Step;
use crate::report::{self, Format, TargetReport};
use crate::session::{Session, Task};
use crate::target::Target;
use crate::verdict::{Check, Reader};
use kcov_vm_guest::protocol::Exit;
use std::ffi::OsString;
use std::fs;
use std::time::Instant;

/// Runs the program on all targets, whatever happens on some, and reports.
pub fn test(
    session: &Session,
    targets: &[&Target],
    options: &TestOptions,
    verbose: bool,
) -> Result<u8> {
    // What is wrong with the command line is said before anything is built.
    if let Some(file) = &options.program {
        Task::new(file, Vec::new()).map_err(Error::Usage)?;
    }
    if let Some(file) = &options.report {
        fs::write(file, "")
            .map_err(|error| Error::usage(format!("--report {}: {error}", file.display())))?;
    }
    if !options.checks.is_empty() {
        session.programs.validate_checks(&options.checks)?;
    }
    let text_now = options.report.is_some() || options.format == Format::Text;
    let mut reports = Vec::new();
    for target in targets {
        let report = on_target(session, target, options, verbose)?;
        if text_now {
            print(&report.text(verbose));
        } else if let Err(failure) = &report.verdict {
            complain(target, failure);
        }
        reports.push(report);
    }
    let whole = || report::render(&reports, options.format, verbose);
    match &options.report {
        Some(file) => fs::write(file, whole())
            .map_err(|error| Error::usage(format!("--report {}: {error}", file.display())))?,
        None if !text_now => print(&whole()),
        None => {}
    }
    Ok(report::status(&reports))
}

fn on_target(
    session: &Session,
    target: &Target,
    options: &TestOptions,
    verbose: bool,
) -> Result<TargetReport> {
    let started = Instant::now();
    let mut report = TargetReport {
        target: target.name.clone(),
        kind: target.kind.name(),
        release: None,
        kernel: None,
        accelerator: None,
        verdict: Ok(Vec::new()),
        times: Vec::new(),
        wall: started.elapsed(),
        logs: None,
    };
    let verdict = judge(session, target, options, verbose, &mut report);
    report.wall = started.elapsed();
    report.verdict = match verdict {
        Ok(checks) => Ok(checks),
        Err(Error::Unavailable(failure)) => Err(failure),
        Err(error) => return Err(error),
    };
    Ok(report)
}

fn judge(
    session: &Session,
    target: &Target,
    options: &TestOptions,
    verbose: bool,
    report: &mut TargetReport,
) -> Result<Vec<Check>> {
    let ready = session.prepare(target)?;
    report.kernel = Some(ready.kernel.clone());
    report.accelerator = Some(ready.accelerator.clone());
    report.logs = Some(ready.logs.clone());
    report.times.push(("prepare", ready.took));

    let started = Instant::now();
    let task = match &options.program {
        Some(file) => Task::new(file, options.arguments.clone()),
        None => Task::new(session.programs.suite()?, suite_arguments(target, &options.checks)),
    };
    let task = task.map_err(|why| Error::unavailable(Phase::Image, why))?;
    report.times.push(("image", started.elapsed()));

    let step = Step::begin(format!("run on {}", target.name), None);
    let mut ear =
        Ear { reader: Reader::default(), errors: Vec::new(), release: None, step: &step, verbose };
    let finished = session.run(&ready, task, &mut ear);
    let Ear { reader, errors, release, .. } = ear;
    report.release = release;
    // What the program said to nobody in particular may explain the rest.
    let _ = fs::write(ready.logs.join("stderr.log"), &errors);
    let finished = finished?;
    step.done();
    report.times.extend([("boot", finished.boot), ("program", finished.program)]);

    let exit = finished.exit.unwrap_or(Exit::Status(0));
    let wrong = |why: String| {
        let text = String::from_utf8_lossy(&errors);
        let mut last: Vec<_> =
            text.lines().rev().take(5).map(|line| format!("its standard error: {line}")).collect();
        last.reverse();
        Unavailable::new(Phase::Verdict, why).detail(last).logs(&ready.logs)
    };
    let checks = reader.finish(exit).map_err(wrong)?;
    if let Some(id) = options.checks.iter().find(|id| !checks.iter().any(|c| c.id == **id)) {
        return Err(wrong(format!("{id} was asked for and there is no result for it")).into());
    }
    Ok(checks)
}

fn suite_arguments(target: &Target, checks: &[String]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = ["run", "--format", "ktap"].map(OsString::from).into();
    if !target.declares.is_empty() {
        arguments.push("--declare".into());
        arguments.push(target.declares.join(",").into());
    }
    arguments.extend(checks.iter().map(OsString::from));
    arguments
}

/// Hears results as they come.
struct Ear<'a> {
    reader: Reader,
    errors: Vec<u8>,
    release: Option<String>,
    step: &'a Step,
    verbose: bool,
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
    }
}
