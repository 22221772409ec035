//! `run`: from the options to an exit status.

use super::request::Request;
use super::select::select;
use super::{EXIT_UNAVAILABLE, EXIT_USAGE};
use crate::claims::Claims;
use crate::declare::{Declaration, probe_all};
use crate::feature::Feature;
use crate::kernel::Kernel;
use crate::plan::reason_to_skip;
use crate::report::{Entry, Report, Verdict};
use crate::runner;
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The reason for skips by `--fail-fast`.
const STOPPED: &str = "a check has failed, and the run ends with the first that does";

pub(super) fn run(request: &Request) -> io::Result<ExitCode> {
    let selected = match select(&request.ids) {
        Ok(selected) => selected,
        Err(error) => {
            eprintln!("kcov-conformance: {error}");
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    let claims = Claims::of_system();
    let mut report = Report::begin(io::stdout().lock(), request.format, selected.len())?;
    let prepared = prepare(&request.device, request.declared.as_ref(), request.unproved);
    let (kernel, target) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => {
            report.bail_out(&why)?;
            return Ok(ExitCode::from(EXIT_UNAVAILABLE));
        }
    };
    report.note(&format!("kernel: {}", kernel.name))?;
    let how = if request.declared.is_some() { "declared" } else { "detected" };
    report.note(&format!("features, {how}: {}", words(&target.features)))?;

    let interface = target.interface(kernel.version);
    let (mut failed, mut ran) = (false, false);
    for check in selected {
        let claim = claims.of_check(check);
        let reason = reason_to_skip(claim, interface, &target);
        let stopped = || (failed && request.fail_fast).then(|| STOPPED.to_owned());
        if let Some(reason) = reason.or_else(stopped) {
            report.entry(&Entry::new(claim, Verdict::Skip, &reason, 0))?;
            continue;
        }
        let limit = check.time_limit(request.time_limit);
        match runner::run(check, &claims, &request.device, limit) {
            Ok(outcome) => {
                let verdict = if outcome.passed() { Verdict::Pass } else { Verdict::Fail };
                let took = outcome.elapsed.as_millis();
                report.entry(&Entry::new(claim, verdict, &outcome.message, took))?;
                failed |= !outcome.passed();
                ran = true;
            }
            Err(error) => {
                report.bail_out(&format!("{} could not be run: {error}", check.id))?;
                return Ok(ExitCode::from(EXIT_UNAVAILABLE));
            }
        }
    }
    report.end()?;
    if !ran {
        eprintln!("kcov-conformance: no check ran: the target is not one that they are for");
        return Ok(ExitCode::from(EXIT_UNAVAILABLE));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The kernel and its features, either declared and proved, or detected.
pub(super) fn prepare(
    device: &Path,
    declared: Option<&Declaration>,
    unproved: bool,
) -> Result<(Kernel, Declaration), String> {
    let kernel = Kernel::running()?;
    if let Some(declared) = declared.filter(|_| unproved) {
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

pub(super) fn words(features: &[Feature]) -> String {
    features.iter().map(|feature| feature.word()).collect::<Vec<_>>().join(",")
}
