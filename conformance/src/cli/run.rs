//! `run`: from the options to an exit status.

use super::{EXIT_UNAVAILABLE, EXIT_USAGE, default_device};
use crate::check::Check;
use crate::claims::Claims;
use crate::declare::{Declaration, probe_all};
use crate::feature::Feature;
use crate::kernel::Kernel;
use crate::plan::reason_to_skip;
use crate::report::{Report, Verdict};
use crate::{checks, runner};
use lexopt::{Arg, Parser, ValueExt as _};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// The options of `run`.
pub(super) struct Request {
    ids: Vec<String>,
    kernel: Options,
    time_limit: Option<Duration>,
    fail_fast: bool,
}

/// The options that `run` and `lockstep` share.
pub(super) struct Options {
    pub(super) declared: Option<Declaration>,
    /// Whether to trust the declaration without probes.
    pub(super) unproved: bool,
    pub(super) device: PathBuf,
}

impl Options {
    pub(super) fn new() -> Options {
        Options { declared: None, unproved: false, device: default_device() }
    }

    /// Takes the option, unless it is none of these.
    pub(super) fn take(&mut self, name: &str, parser: &mut Parser) -> Result<bool, lexopt::Error> {
        match name {
            "declare" => self.declared = Some(Declaration::parse(&parser.value()?.string()?)?),
            "unproved" => self.unproved = true,
            "device" => self.device = parser.value()?.into(),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

pub(super) fn request(parser: &mut Parser) -> Result<Request, lexopt::Error> {
    let (mut ids, mut kernel) = (Vec::new(), Options::new());
    let (mut time_limit, mut fail_fast) = (None, false);
    while let Some(arg) = parser.next()? {
        let name = match arg {
            Arg::Value(id) => {
                ids.push(id.string()?);
                continue;
            }
            Arg::Long(name) => name.to_owned(),
            other => return Err(other.unexpected()),
        };
        match name.as_str() {
            "fail-fast" => fail_fast = true,
            "format" => match parser.value()?.to_str() {
                Some("ktap") => {}
                word => return Err(format!("--format: {word:?} is not ktap").into()),
            },
            "time-limit" => {
                time_limit = Some(Duration::from_secs(parser.value()?.parse::<u32>()?.into()));
            }
            name if kernel.take(name, parser)? => {}
            name => return Err(lexopt::Error::UnexpectedOption(format!("--{name}"))),
        }
    }
    Ok(Request { ids, kernel, time_limit, fail_fast })
}

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

pub(super) fn run(request: &Request) -> io::Result<ExitCode> {
    let selected = match select(&request.ids) {
        Ok(selected) => selected,
        Err(error) => {
            eprintln!("kcov-conformance: {error}");
            return Ok(ExitCode::from(EXIT_USAGE));
        }
    };
    let claims = Claims::of_system();
    let mut report = Report::begin(io::stdout().lock(), selected.len())?;
    let prepared = prepare(&request.kernel);
    let (kernel, target) = match prepared {
        Ok(prepared) => prepared,
        Err(why) => {
            report.bail_out(&why)?;
            return Ok(ExitCode::from(EXIT_UNAVAILABLE));
        }
    };
    report.note(&format!("kernel: {}", kernel.name))?;
    let how = if request.kernel.declared.is_some() { "declared" } else { "detected" };
    report.note(&format!("features, {how}: {}", words(&target.features)))?;

    let interface = target.interface(kernel.version);
    let (mut failed, mut ran) = (false, false);
    for check in selected {
        let claim = claims.of_check(check);
        let reason = reason_to_skip(claim, interface, &target);
        let stopped = || (failed && request.fail_fast).then(|| STOPPED.to_owned());
        if let Some(reason) = reason.or_else(stopped) {
            report.entry(claim, Verdict::Skip, &reason)?;
            continue;
        }
        let limit = check.time_limit(request.time_limit);
        match runner::run(check, &claims, &request.kernel.device, limit) {
            Ok(outcome) => {
                let verdict = if outcome.passed() { Verdict::Pass } else { Verdict::Fail };
                report.entry(claim, verdict, &outcome.message)?;
                failed |= !outcome.passed();
                ran = true;
            }
            Err(error) => {
                report.bail_out(&format!("{} could not be run: {error}", check.id))?;
                return Ok(ExitCode::from(EXIT_UNAVAILABLE));
            }
        }
    }
    if !ran {
        eprintln!("kcov-conformance: no check ran: the target is not one that they are for");
        return Ok(ExitCode::from(EXIT_UNAVAILABLE));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The kernel and its features, either declared and proved, or detected.
pub(super) fn prepare(options: &Options) -> Result<(Kernel, Declaration), String> {
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

pub(super) fn words(features: &[Feature]) -> String {
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
