//! The command line.

use crate::check::Check;
use crate::claims::{Claims, Status};
use crate::declare::{Declaration, SYSTEMS, probe_all};
use crate::feature::Feature;
use crate::kernel::{Kernel, Version};
use crate::lockstep::{self, Lockstep};
use crate::plan::{self, reason_to_skip};
use crate::raw::{DEVICE, Device, call};
use crate::report::{Report, Verdict};
use crate::{checks, runner};
use lexopt::{Arg, Parser, ValueExt as _};
use std::error::Error;
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

const USAGE: &str = "\
Proves claims about the kernel coverage device on the running kernel.

Usage: kcov-conformance <command>

  list               lists the checks: id, source, claim
      --system WORD      of another system: linux or netbsd
  claims             lists the registry: id, status, source, claim
  plan               lists the checks of a run, with the reasons for skips
      --declare WORDS    the features of the target's kernel, comma-separated
      --release R        the kernel's release, such as 7.3.4
  run [ID...]        runs these checks, or all; ID can be a topic like `enable`
      --declare WORDS    the features of the target's kernel, comma-separated
      --unproved         trusts --declare: for kernels that were altered
      --device PATH      the device
      --format ktap      the format of the report, which has no other
      --time-limit S     the time limit of a check in seconds, none by default
      --fail-fast        skips the other checks after the first failure
  lockstep           compares the kernel with the model on random operations
      --operations N     the number for each seed, 10000 by default
      --seed S           can be repeated
      --declare, --unproved, --device   as above
  help               prints this text

Exit status: 0 all passed, 1 some failed, 2 wrong command line, 69 no verdict.";

/// The exit status for a wrong command line.
pub const EXIT_USAGE: u8 = 2;
/// The exit status if there is no verdict because of the infrastructure.
pub const EXIT_UNAVAILABLE: u8 = 69;

/// Runs the command on the process's command line.
pub fn main() -> ExitCode {
    command(&mut Parser::from_env()).unwrap_or_else(|error| {
        eprintln!("kcov-conformance: {error}");
        ExitCode::from(if error.is::<io::Error>() { EXIT_UNAVAILABLE } else { EXIT_USAGE })
    })
}

/// The options of all commands.
struct Options {
    ids: Vec<String>,
    declared: Option<Declaration>,
    /// Whether to trust the declaration without probes.
    unproved: bool,
    device: PathBuf,
    time_limit: Option<Duration>,
    fail_fast: bool,
    operations: NonZeroU64,
    seeds: Vec<u64>,
    system: &'static str,
    release: Option<Version>,
}

/// Parses the rest of the command line, with ids or only with the options of these names.
fn options(parser: &mut Parser, ids: bool, known: &[&str]) -> Result<Options, lexopt::Error> {
    let mut options = Options {
        ids: Vec::new(),
        declared: None,
        unproved: false,
        device: DEVICE.into(),
        time_limit: None,
        fail_fast: false,
        operations: NonZeroU64::new(10_000).expect("not 0"),
        seeds: Vec::new(),
        system: crate::system::WORD,
        release: None,
    };
    while let Some(arg) = parser.next()? {
        let name = match arg {
            Arg::Value(id) if ids => {
                options.ids.push(id.string()?);
                continue;
            }
            Arg::Long(name) if known.contains(&name) => name.to_owned(),
            other => return Err(other.unexpected()),
        };
        match name.as_str() {
            "declare" => options.declared = Some(Declaration::parse(&parser.value()?.string()?)?),
            "unproved" => options.unproved = true,
            "device" => options.device = parser.value()?.into(),
            "format" => match parser.value()?.to_str() {
                Some("ktap") => {}
                word => return Err(format!("--format: {word:?} is not ktap").into()),
            },
            "time-limit" => {
                let seconds = parser.value()?.parse::<u32>()?;
                options.time_limit = Some(Duration::from_secs(seconds.into()));
            }
            "fail-fast" => options.fail_fast = true,
            "operations" => options.operations = parser.value()?.parse()?,
            "seed" => options.seeds.push(parser.value()?.parse()?),
            "system" => {
                let word = parser.value()?.string()?;
                let known = SYSTEMS.iter().find(|known| **known == word);
                options.system = known.ok_or_else(|| format!("--system: {word:?} is not known"))?;
            }
            "release" => {
                let release = parser.value()?.string()?;
                let version = Version::of_release(&release);
                options.release =
                    Some(version.ok_or(format!("--release: no version in {release:?}"))?);
            }
            _ => unreachable!("--{name} has no meaning"),
        }
    }
    Ok(options)
}

fn command(parser: &mut Parser) -> Result<ExitCode, Box<dyn Error>> {
    let word = match parser.next()? {
        Some(Arg::Value(word)) => word.string()?,
        None | Some(Arg::Long("help") | Arg::Short('h')) => "help".to_owned(),
        Some(other) => return Err(other.unexpected().into()),
    };
    let kernel = ["declare", "unproved", "device"];
    let mut out = io::stdout();
    match word.as_str() {
        "run" => {
            let own = ["format", "time-limit", "fail-fast"];
            return run(&options(parser, true, &[kernel, own].concat())?);
        }
        "lockstep" => {
            let known = [&kernel[..], &["operations", "seed"]].concat();
            return Ok(lockstep(&options(parser, false, &known)?)?);
        }
        "list" => {
            let claims = Claims::of(options(parser, false, &["system"])?.system);
            // A test ensures that the checks are exactly those of the checked claims.
            for claim in claims.iter().filter(|claim| claim.status() == Status::Checked) {
                writeln!(out, "{}\t{}\t{}", claim.id, claim.place(), claim.text)?;
            }
        }
        "plan" => {
            let options = options(parser, false, &["declare", "release"])?;
            let kernel = options.release.ok_or("--release is missing")?;
            let target = options.declared.ok_or("--declare is missing")?;
            plan::write(kernel, &target, &mut out.lock())?;
        }
        "claims" => {
            options(parser, false, &[])?;
            for claim in Claims::of_system().iter() {
                let status = claim.status().word();
                writeln!(out, "{}\t{status}\t{}\t{}", claim.id, claim.place(), claim.text)?;
            }
        }
        "help" => {
            options(parser, false, &[])?;
            writeln!(out, "{USAGE}")?;
        }
        // Internal commands: of lockstep, and of checks that execute this program.
        "worker" => lockstep::serve(&parser.value()?.string()?),
        "helper" => match parser.next()? {
            None => announce_then_call()?,
            Some(Arg::Long("disable")) => disable(parser.value()?.parse()?)?,
            Some(other) => return Err(other.unexpected().into()),
        },
        _ => return Err(format!("no command {word:?}, see `help`").into()),
    }
    Ok(ExitCode::SUCCESS)
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

fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let selected = select(&options.ids)?;
    let claims = Claims::of_system();
    let mut report = Report::begin(io::stdout().lock(), selected.len())?;
    let (kernel, target) = match prepare(options) {
        Ok(prepared) => prepared,
        Err(why) => return Ok(unavailable(report, &why)?),
    };
    let how = if options.declared.is_some() { "declared" } else { "detected" };
    let features = words(&target.features);
    report.note(&format!("kernel: {}\nfeatures, {how}: {features}", kernel.name))?;

    let interface = target.interface(kernel.version);
    let (mut failed, mut ran) = (false, false);
    for check in selected {
        let claim = claims.of_check(check.id);
        let reason = reason_to_skip(claim, interface, &target);
        let stopped = || (failed && options.fail_fast).then(|| STOPPED.to_owned());
        if let Some(reason) = reason.or_else(stopped) {
            report.entry(check.id, Verdict::Skip, &reason)?;
            continue;
        }
        let limit = check.time_limit(options.time_limit);
        let run = || {
            check.run(&claims, &options.device, limit);
            0
        };
        match runner::supervise(limit, run) {
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
                let why = format!("{} could not be run: {error}", check.id);
                return Ok(unavailable(report, &why)?);
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
fn lockstep(options: &Options) -> io::Result<ExitCode> {
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
            Ok(agree) => {
                if agree {
                    Verdict::Pass
                } else {
                    Verdict::Fail
                }
            }
            Err(why) => return unavailable(report, &why),
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

/// Writes a line to standard output, waits for a byte on standard input, and makes the traced call.
///
/// It does nothing else in between, so the line shows that the new program has started.
fn announce_then_call() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(b"!")?;
    out.flush()?;
    io::stdin().read_exact(&mut [0])?;
    call();
    Ok(())
}

/// Disables the device of an inherited descriptor.
fn disable(inherited: RawFd) -> io::Result<()> {
    // SAFETY: the check that executes this program left the descriptor open for it.
    let device = Device::from(unsafe { OwnedFd::from_raw_fd(inherited) });
    device.disable().map_err(|errno| io::Error::from_raw_os_error(errno.0))
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
