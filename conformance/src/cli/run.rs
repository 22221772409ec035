//! `run`: from what is asked for to an exit status.

use super::{EXIT_UNAVAILABLE, EXIT_USAGE, Request};
use crate::check::Check;
use crate::checks;
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
    let (kernel, target) = match prepare(&request.device, request.declared.as_ref()) {
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

/// The checks of those ids and topics, or all, in their own order.
fn select(ids: &[String]) -> Result<Vec<&'static Check>, String> {
    let matches = |check: &Check, id: &str| {
        let own = check.id();
        own.strip_prefix(id).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    for id in ids {
        if !checks::all().any(|check| matches(check, id)) {
            let near = near(id);
            let hint = if near.is_empty() { "see `list`".to_owned() } else { near.join(", ") };
            return Err(format!("no check {id:?}; near names: {hint}"));
        }
    }
    let wanted = |check: &&Check| ids.is_empty() || ids.iter().any(|id| matches(check, id));
    Ok(checks::all().filter(wanted).collect())
}

/// The same checks, with those of these ids before the others, in this order.
fn first(mut checks: Vec<&'static Check>, ids: &[String]) -> Result<Vec<&'static Check>, String> {
    if let Some(id) = ids.iter().find(|id| !checks.iter().any(|check| check.id() == **id)) {
        return Err(format!("--first: {id:?} is not among the checks that are to run"));
    }
    checks.sort_by_cached_key(|check| {
        let id = check.id();
        ids.iter().position(|first| *first == id).unwrap_or(ids.len())
    });
    Ok(checks)
}

/// At most three ids that someone may have meant.
fn near(id: &str) -> Vec<String> {
    let mut all: Vec<_> = checks::all()
        .map(|check| {
            let known = check.id();
            (distance(id, &known), known)
        })
        .filter(|(distance, known)| {
            distance * 3 <= id.len() || (id.len() > 3 && known.contains(id))
        })
        .collect();
    all.sort();
    all.into_iter().take(3).map(|(_, known)| known).collect()
}

/// Letters to change, insert or remove to make one word of the other.
fn distance(a: &str, b: &str) -> usize {
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, y) in b.bytes().enumerate() {
            let changed = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, first, near, reason_to_skip, select};
    use crate::checks;
    use crate::claims::Claims;
    use crate::declare::{Declaration, Feature};
    use crate::kernel::Version;

    #[test]
    fn an_unknown_id_is_answered_with_near_ones() {
        let first = checks::all().next().unwrap().id();
        let misspelt = first.replacen('e', "a", 1);
        assert!(near(&misspelt).contains(&first));
        let error = select(&[misspelt]).unwrap_err();
        assert!(error.contains(&first) && !error.contains('\n'));
        assert!(select(&["x".to_owned()]).unwrap_err().contains("see `list`"));
    }

    #[test]
    fn a_topic_selects_its_checks_only() {
        let selected = select(&["enable".to_owned()]).unwrap();
        assert!(selected.len() > 1);
        assert!(selected.iter().all(|check| check.id().starts_with("enable.")));
        assert!(select(&["enab".to_owned()]).is_err());
    }

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

    #[test]
    fn some_checks_can_come_first() {
        let ids = |checks: Vec<&'static crate::check::Check>| {
            checks.into_iter().map(crate::check::Check::id).collect::<Vec<_>>()
        };
        let all = || select(&[]).unwrap();
        let usual = ids(all());
        let (one, other) = (usual[7].clone(), usual[3].clone());
        let moved = ids(first(all(), &[one.clone(), other.clone()]).unwrap());
        assert_eq!(moved[..3], [one, other, usual[0].clone()]);
        assert_eq!(moved.len(), usual.len());
        assert!(first(all(), &["none".to_owned()]).unwrap_err().contains("\"none\""));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abc"), 0);
    }
}
