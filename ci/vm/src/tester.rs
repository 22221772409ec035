//! `test`: runs a KTAP program on targets and judges its results.

mod guest;
mod promise;

pub use guest::suite_arguments;

use crate::cli::{ReportOptions, TestOptions};
use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::ids;
use crate::output::{complain, print};
use crate::parallel::{self, processors};
use crate::progress::Step;
use crate::report::{Format, Run, TargetReport, Verdict, text};
use crate::session::{Ready, Session};
use crate::system::System;
use crate::target::{Kind, Target};
use crate::verdict::{Check, none_ran};
use guest::Heard;
use promise::Promise;
use std::fs;
use std::sync::OnceLock;
use std::thread;
use std::time::Instant;

/// The maximum number of guests of one target that share the suite.
const MOST_GUESTS: usize = 6;

/// The suite's checks for a system: all ids, and the requested ones; none means all.
struct Suite {
    system: System,
    ids: Vec<String>,
    asked: Vec<String>,
}

/// The test plan for all targets.
struct Plan<'a> {
    session: &'a Session,
    options: &'a TestOptions,
    verbose: bool,
    /// The suite's checks by system, if the suite runs.
    suites: Vec<Suite>,
    /// The maximum number of parallel guests of one target.
    guests_each: usize,
}

impl Plan<'_> {
    fn suite(&self, target: &Target) -> Option<&Suite> {
        self.suites.iter().find(|suite| suite.system == target.kind.system())
    }

    fn asked(&self, target: &Target) -> &[String] {
        self.suite(target).map_or(&[], |suite| &suite.asked)
    }

    /// Distributes the checks over the target's guests. A target that boots instantly gets several
    /// guests if there are free processors.
    fn shares(&self, target: &Target) -> Vec<Vec<String>> {
        let options = self.options;
        let whole = target.kind == Kind::Uml
            && options.program.is_none()
            && options.suite.is_empty()
            && options.checks.is_empty();
        let (true, 2.., Some(Suite { ids, .. })) = (whole, self.guests_each, self.suite(target))
        else {
            return vec![self.asked(target).to_vec()];
        };
        // A check that waits for a device leaves its processor to another guest.
        let guests = (self.guests_each * 3).min(MOST_GUESTS);
        (0..guests).map(|first| ids.iter().skip(first).step_by(guests).cloned().collect()).collect()
    }
}

/// Runs the program on all targets and reports. A failure on one target does not stop the others.
pub fn test(
    session: &Session,
    targets: &[&Target],
    options: &TestOptions,
    verbose: bool,
) -> Result<u8> {
    let started = Instant::now();
    validate(session, targets, options)?;
    let suites = suites(session, targets, options)?;
    let guests = options.guests.map_or_else(processors, |guests| guests as usize);
    let guests_each = guests / targets.len().max(1);
    let plan = Plan { session, options, verbose, suites, guests_each };
    let ReportOptions { format, file } = &options.report;
    let text_now = file.is_some() || *format == Format::Text;
    let brief = targets.len() > 1 && !verbose;

    // Kernels are built one after the other, before any guest with a time limit starts.
    let mut reports: Vec<_> = targets.iter().map(|target| prepare(&plan, target)).collect();
    let ready: Vec<usize> = (0..targets.len()).filter(|&index| reports[index].is_none()).collect();
    let say = |report: &TargetReport, target: &Target| match &report.verdict {
        _ if text_now => print(&text(report, verbose, brief)),
        Verdict::None(failure) => complain(target, failure),
        Verdict::NotRun(what) => complain(target, &format_args!("not run: {what}")),
        Verdict::Checks(_) => {}
    };
    for (report, target) in reports.iter().zip(targets) {
        if let Some(report) = report {
            say(report, target);
        }
    }
    let chosen: Vec<&Target> = ready.iter().map(|&index| targets[index]).collect();
    let work = |target: &Target| on_target(&plan, target);
    parallel::run(&chosen, guests, work, |index, report| {
        say(&report, chosen[index]);
        reports[ready[index]] = Some(report);
    });

    let run = Run { reports: reports.into_iter().flatten().collect(), wall: started.elapsed() };
    let whole = || run.render(*format, verbose);
    if text_now {
        print(&run.summary());
    }
    match file {
        Some(file) => fs::write(file, whole())
            .or_unavailable(Phase::Output, format_args!("--report {}", file.display()))?,
        None if !text_now => print(&whole()),
        None => {}
    }
    Ok(run.status())
}

/// Checks the command line before anything is built.
fn validate(session: &Session, targets: &[&Target], options: &TestOptions) -> Result<()> {
    if let Some(file) = &options.program {
        for target in targets.iter().filter(|target| session.given(target).is_ok()) {
            session.task(target, file, Vec::new(), Vec::new()).map_err(Error::Usage)?;
        }
    }
    if let Some(file) = &options.report.file {
        fs::write(file, "")
            .map_err(|error| Error::usage(format!("--report {}: {error}", file.display())))?;
    }
    Ok(())
}

/// Builds the suite for each system and looks up the named checks.
fn suites(session: &Session, targets: &[&Target], options: &TestOptions) -> Result<Vec<Suite>> {
    let nothing_runs = targets.iter().all(|target| session.given(target).is_err());
    if options.program.is_some() || nothing_runs {
        return Ok(Vec::new());
    }
    let mut suites: Vec<Suite> = Vec::new();
    for system in targets.iter().map(|target| target.kind.system()) {
        if suites.iter().all(|other| other.system != system) {
            let ids = session.programs.checks(system)?;
            let asked = ids::select(&options.checks, &ids, &session.programs.suite, system)?;
            suites.push(Suite { system, ids, asked });
        }
    }
    Ok(suites)
}

/// Builds the target's kernel and suite. Returns a report if that fails.
fn prepare(plan: &Plan<'_>, target: &Target) -> Option<TargetReport> {
    let started = Instant::now();
    let kernel = plan.session.kernel(target);
    let failure = kernel.map(drop).and_then(|()| match plan.options.program {
        Some(_) => Ok(()),
        None => plan.session.programs.suite_for(target.triple()).map(drop),
    });
    let report = TargetReport::of(target);
    failure.err().map(|error| concluded(plan, target, report, Err(error), started))
}

/// Completes a report with the result of a target.
fn concluded(
    plan: &Plan<'_>,
    target: &Target,
    mut report: TargetReport,
    result: Result<Vec<Check>>,
    started: Instant,
) -> TargetReport {
    report.verdict = match result {
        Ok(checks) => Verdict::Checks(checks),
        Err(Error::Unavailable(failure)) => Verdict::None(failure),
        Err(Error::NotGiven(what)) => Verdict::NotRun(what),
        Err(Error::Usage(message)) => Verdict::None(Unavailable::new(Phase::Targets, message)),
    };
    report.required = !plan.options.all || plan.options.names.contains(&target.name);
    report.wall = started.elapsed();
    report
}

fn on_target(plan: &Plan<'_>, target: &Target) -> TargetReport {
    let started = Instant::now();
    let mut report = TargetReport::of(target);
    let result = judge(plan, target, &mut report);
    concluded(plan, target, report, result, started)
}

fn judge(plan: &Plan<'_>, target: &Target, report: &mut TargetReport) -> Result<Vec<Check>> {
    let session = plan.session;
    let shares = plan.shares(target);
    let ready: Vec<Ready<'_>> =
        shares.iter().map(|_| session.prepare(target)).collect::<Result<_>>()?;
    report.kernel = Some(ready[0].kernel.clone());
    report.accelerator = Some(ready[0].accelerator.clone());
    report.logs = Some(ready[0].logs.clone());
    report.times.push(("prepare", ready[0].took));

    let step = Step::begin(format!("run on {}", target.name));
    let release = OnceLock::new();
    let hear = |ready, ids| guest::run(plan, target, ready, ids, &release);
    let heard: Vec<Result<Heard>> = thread::scope(|scope| {
        let others: Vec<_> = std::iter::zip(&ready, &shares)
            .skip(1)
            .map(|(ready, ids)| scope.spawn(move || hear(ready, ids)))
            .collect();
        let first = hear(&ready[0], &shares[0]);
        let others = others.into_iter().map(|other| other.join().expect("a guest's thread"));
        std::iter::once(first).chain(others).collect()
    });
    report.release = release.into_inner();
    let heard: Vec<Heard> = heard.into_iter().collect::<Result<_>>()?;
    step.done();
    report.times.extend(heard[0].times);
    let promises = promises(plan, target, report.release.as_deref().unwrap_or_default())?;

    let checks = heard.into_iter().flat_map(|heard| heard.checks).collect();
    let no_verdict = |why| Unavailable::new(Phase::Verdict, why).logs(&ready[0].logs).into();
    let asked = plan.asked(target);
    let checks = promise::conclude(checks, promises.as_deref(), asked).map_err(no_verdict)?;
    match none_ran(&checks) {
        None => Ok(checks),
        // A named check may be meant for the other targets.
        Some(why) if !asked.is_empty() => Err(Error::NotGiven(why)),
        Some(why) => Err(no_verdict(why)),
    }
}

/// Returns the suite's promises for the target, if the suite runs.
fn promises(plan: &Plan<'_>, target: &Target, release: &str) -> Result<Option<Vec<Promise>>> {
    if plan.options.program.is_some() || !plan.options.suite.is_empty() {
        return Ok(None);
    }
    let text = plan.session.programs.plan(&target.declares, release)?;
    let promises = promise::parse(&text).map_err(|why| Error::unavailable(Phase::Verdict, why))?;
    Ok(Some(promises))
}
