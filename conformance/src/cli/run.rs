//! `run` and `lockstep`: from the options to an exit status.

use super::{EXIT_UNAVAILABLE, EXIT_USAGE, Options};
use crate::check::Check;
use crate::claims::Claims;
use crate::declare::{Declaration, probe_all};
use crate::feature::Feature;
use crate::kernel::Kernel;
use crate::lockstep::{self, Lockstep};
use crate::plan::reason_to_skip;
use crate::report::{Report, Verdict};
use crate::{checks, runner};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The checks with these ids and topics, or all, in the suite's order.
fn select(ids: &[String]) -> Result<Vec<&'static Check>, String> {
    let matches = |check: &Check, id: &str| {
        check.id.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    if let Some(id) = ids.iter().find(|id| !checks::all().any(|check| matches(check, id))) {
        return Err(format!("no check {id:?}; see `list`"));
    }
    let wanted = |check: &&Check| ids.is_empty() || ids.iter().any(|id| matches(check, id));
    Ok(checks::all().filter(wanted).collect())
}

/// The reason for skips by `--fail-fast`.
const STOPPED: &str = "a check has failed, and the run ends with the first that does";

pub(super) fn run(options: &Options) -> io::Result<ExitCode> {
    let selected = match select(&options.ids) {
        Ok(selected) => selected,
        Err(error) => {
            eprintln!("kcov-conformance: {error}");
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    let claims = Claims::of_system();
    let mut report = Report::begin(io::stdout().lock(), selected.len())?;
    let (kernel, target) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(why) => return unavailable(report, &why),
    };
    let how = if options.declared.is_some() { "declared" } else { "detected" };
    let features = words(&target.features);
    report.note(&format!("kernel: {}\nfeatures, {how}: {features}", kernel.name))?;

    let interface = target.interface(kernel.version);
    let (mut failed, mut ran) = (false, false);
    for check in selected {
        let claim = claims.of_check(check);
        let reason = reason_to_skip(claim, interface, &target);
        let stopped = || (failed && options.fail_fast).then(|| STOPPED.to_owned());
        if let Some(reason) = reason.or_else(stopped) {
            report.entry(check.id, Verdict::Skip, &reason)?;
            continue;
        }
        let limit = check.time_limit(options.time_limit);
        match runner::run(check, &claims, &options.device, limit) {
            Ok(outcome) => {
                let verdict = if outcome.passed() { Verdict::Pass } else { Verdict::Fail };
                if verdict == Verdict::Fail {
                    report.note(&format!("claim: {}\nsource: {}", claim.text, claim.place()))?;
                    failed = true;
                }
                report.entry(check.id, verdict, &outcome.message)?;
                ran = true;
            }
            Err(error) => {
                return unavailable(report, &format!("{} could not be run: {error}", check.id));
            }
        }
    }
    if !ran {
        eprintln!("kcov-conformance: no check ran: the target is not one that they are for");
        return Ok(ExitCode::from(EXIT_UNAVAILABLE));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Reports one result for each seed.
pub(super) fn lockstep(options: &Options) -> io::Result<ExitCode> {
    let seeds = if options.seeds.is_empty() { &[1][..] } else { &options.seeds };
    let mut report = Report::begin(io::stdout(), seeds.len())?;
    let prepared = prepare(options).and_then(|(kernel, target)| {
        let lockstep = Lockstep::new(&options.device, &target.features)?;
        Ok((kernel, target, lockstep))
    });
    let (kernel, target, mut lockstep) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => return unavailable(report, &why),
    };
    report.note(&format!("kernel: {}\nfeatures: {}", kernel.name, words(&target.features)))?;
    let mut failed = false;
    for seed in seeds {
        let note = |text: &str| report.note(text);
        let verdict = match lockstep.run(*seed, options.operations.get(), note)? {
            lockstep::Verdict::Agreed => Verdict::Pass,
            lockstep::Verdict::Parted => Verdict::Fail,
            lockstep::Verdict::None(why) => return unavailable(report, &why),
        };
        failed |= verdict == Verdict::Fail;
        report.entry(&format!("lockstep.seed-{seed}"), verdict, "")?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Ends the report without a verdict.
fn unavailable(report: Report<impl io::Write>, why: &str) -> io::Result<ExitCode> {
    report.bail_out(why)?;
    Ok(ExitCode::from(EXIT_UNAVAILABLE))
}

/// The kernel and its features, either declared and proved, or detected.
fn prepare(options: &Options) -> Result<(Kernel, Declaration), String> {
    let kernel = Kernel::running()?;
    let (device, declared): (&Path, _) = (&options.device, options.declared.as_ref());
    if let Some(declared) = declared.filter(|_| options.unproved) {
        return Ok((kernel, declared.clone()));
    }
    let found = probe_all(device)?;
    let Some(declared) = declared else {
        if !found.contains(&Feature::Kcov) {
            return Err(format!("there is no device at {}", device.display()));
        }
        return Ok((kernel, Declaration { features: found, system: None }));
    };
    let mismatches = declared.mismatches(&found);
    if mismatches.is_empty() {
        return Ok((kernel, declared.clone()));
    }
    Err(format!("the kernel is not what the target declares: {}", mismatches.join(", ")))
}

fn words(features: &[Feature]) -> String {
    features.iter().map(|feature| feature.word()).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::select;

    #[test]
    fn an_unknown_id_is_named_on_one_line() {
        let error = select(&["enab".to_owned()]).unwrap_err();
        assert!(error.contains("\"enab\"") && error.contains("see `list`"), "{error}");
    }

    #[test]
    fn a_topic_selects_its_checks_only() {
        let selected = select(&["enable".to_owned()]).unwrap();
        assert!(selected.len() > 1);
        assert!(selected.iter().all(|check| check.id.starts_with("enable.")));
    }
}
