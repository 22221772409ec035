//! `run`: from what is asked for to an exit status.

use super::request::Request;
use super::select::{first, select};
use super::{EXIT_UNAVAILABLE, EXIT_USAGE};
use crate::check::Check;
use crate::claims::{Claim, Claims};
use crate::declare::{Declaration, Feature, probe_all};
use crate::kernel::{Kernel, Version};
use crate::report::{Entry, Report, Verdict};
use crate::runner::{self, Outcome};
use std::io;
use std::path::Path;
use std::process::ExitCode;

/// The reason of the skips that `--fail-fast` makes.
const STOPPED: &str = "a check has failed, and the run ends with the first that does";

pub(super) fn run(request: &Request) -> io::Result<ExitCode> {
    let selected = select(&request.ids).and_then(|found| first(found, &request.first));
    let selected = match selected {
        Ok(selected) => selected,
        Err(error) => {
            eprintln!("kcov-conformance: {error}");
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    let claims = Claims::of_system();
    let mut report = Report::begin(io::stdout().lock(), request.format, selected.len())?;
    let prepared = match request.declared.as_ref().filter(|_| request.unproved) {
        Some(declared) => Kernel::running().map(|kernel| (kernel, declared.clone())),
        None => prepare(&request.device, request.declared.as_ref()),
    };
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

    let version = crate::raw::interface(kernel.version, &target.features);
    let mut failed = false;
    for check in selected {
        let id = check.id();
        let claim = claims.get(&id).expect("every check has its claim");
        let reason = reason_to_skip(check, claim, version, &target);
        let stopped = || (failed && request.fail_fast).then(|| STOPPED.to_owned());
        if let Some(reason) = reason.or_else(stopped) {
            report.entry(&Entry::new(claim, Verdict::Skip, &reason, 0))?;
            continue;
        }
        let limit = check.time_limit(request.time_limit);
        match runner::run(check, &claims, &request.device, limit) {
            Ok(outcome) => {
                let verdict = if outcome.passed { Verdict::Pass } else { Verdict::Fail };
                let took = outcome.elapsed.as_millis();
                let message = observed(&outcome, claim);
                report.entry(&Entry::new(claim, verdict, &message, took))?;
                failed |= !outcome.passed;
            }
            Err(error) => {
                report.bail_out(&format!("{id} could not be run: {error}"))?;
                return Ok(ExitCode::from(EXIT_UNAVAILABLE));
            }
        }
    }
    report.end()?;
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// What the check said, and what it has seen if that is more than its name says.
fn observed(outcome: &Outcome, claim: &Claim) -> String {
    match claim.errno.filter(|_| outcome.passed) {
        Some(errno) => format!("{}\nobserved: {errno}", outcome.message).trim_start().to_owned(),
        None => outcome.message.clone(),
    }
}

/// What the kernel is, and what it has, as declared and proved or as detected.
pub(super) fn prepare(
    device: &Path,
    declared: Option<&Declaration>,
) -> Result<(Kernel, Declaration), String> {
    let kernel = Kernel::running()?;
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

fn reason_to_skip(
    check: &Check,
    claim: &Claim,
    version: Version,
    target: &Declaration,
) -> Option<String> {
    if let Some(reason) = claim.excludes(version) {
        return Some(reason);
    }
    if let Some(missing) = check.needed().find(|&feature| !target.has(feature)) {
        return Some(format!("the target does not declare {missing}"));
    }
    let unwanted = check.without.iter().find(|&&feature| target.has(feature))?;
    Some(format!("the target declares {unwanted}"))
}

#[cfg(test)]
mod tests {
    use super::reason_to_skip;
    use crate::checks;
    use crate::claims::Claims;
    use crate::declare::{Declaration, Feature};
    use crate::kernel::Version;

    #[test]
    fn a_check_that_the_declaration_lets_run_is_run() {
        let claims = Claims::of_system();
        for check in checks::all() {
            let id = check.id();
            let claim = claims.get(&id).expect("every check has its claim");
            let version = claim.since.unwrap_or(Version(0, 0));
            let all: Vec<Feature> =
                Feature::ALL.iter().copied().filter(|f| !check.without.contains(f)).collect();
            let reason = |features: &[Feature], version| {
                let target = Declaration { features: features.to_vec(), system: None };
                reason_to_skip(check, claim, version, &target)
            };
            assert_eq!(reason(&all, version), None, "{id}");
            let needed: Vec<Feature> = check.needed().collect();
            assert_eq!(reason(&needed, version), None, "{id}");
            for missing in &needed {
                let rest: Vec<Feature> = all.iter().copied().filter(|f| f != missing).collect();
                let said = format!("the target does not declare {missing}");
                assert_eq!(reason(&rest, version), Some(said), "{id}");
            }
            for unwanted in check.without {
                let more: Vec<Feature> = needed.iter().copied().chain([*unwanted]).collect();
                let said = format!("the target declares {unwanted}");
                assert_eq!(reason(&more, version), Some(said), "{id}");
            }
            assert_eq!(
                reason(&all, claim.until.unwrap_or(version)).is_some(),
                claim.until.is_some()
            );
        }
    }
}
