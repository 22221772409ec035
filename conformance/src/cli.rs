//! The command line.

mod run;

use crate::claims::{Claims, Status};
use crate::declare::{Declaration, SYSTEMS};
use crate::kernel::Version;
use crate::plan;
use crate::raw::{DEVICE, Device, call};
use lexopt::{Arg, Parser, ValueExt as _};
use std::io::{self, Read as _, Write as _};
use std::num::NonZeroU64;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};
use std::path::PathBuf;
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
    match command(&mut Parser::from_env()) {
        Ok(code) => code,
        Err(Stop::Usage(error)) => {
            eprintln!("kcov-conformance: {error}");
            ExitCode::from(EXIT_USAGE)
        }
        Err(Stop::Output(error)) => {
            eprintln!("kcov-conformance: {error}");
            ExitCode::from(EXIT_UNAVAILABLE)
        }
    }
}

/// The reason why a command stopped.
enum Stop {
    Usage(lexopt::Error),
    Output(io::Error),
}

impl From<lexopt::Error> for Stop {
    fn from(error: lexopt::Error) -> Stop {
        Stop::Usage(error)
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Stop {
        Stop::Output(error)
    }
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
        system: crate::system::checks::WORD,
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

fn command(parser: &mut Parser) -> Result<ExitCode, Stop> {
    let word = match parser.next()? {
        Some(Arg::Value(word)) => word.string()?,
        None | Some(Arg::Long("help") | Arg::Short('h')) => "help".to_owned(),
        Some(other) => return Err(other.unexpected().into()),
    };
    let kernel = ["declare", "unproved", "device"];
    match word.as_str() {
        "run" => {
            let own = ["format", "time-limit", "fail-fast"];
            return Ok(run::run(&options(parser, true, &[kernel, own].concat())?)?);
        }
        "lockstep" => {
            let known = [&kernel[..], &["operations", "seed"]].concat();
            return Ok(run::lockstep(&options(parser, false, &known)?)?);
        }
        "list" => list(options(parser, false, &["system"])?.system)?,
        "plan" => {
            let Options { release, declared, .. } =
                options(parser, false, &["declare", "release"])?;
            let kernel = release.ok_or(lexopt::Error::from("--release is missing"))?;
            let target = declared.ok_or(lexopt::Error::from("--declare is missing"))?;
            plan::write(kernel, &target, &mut io::stdout().lock())?;
        }
        "claims" => {
            options(parser, false, &[])?;
            claims()?;
        }
        "help" => {
            options(parser, false, &[])?;
            writeln!(io::stdout(), "{USAGE}")?;
        }
        // Internal commands: of lockstep, and of checks that execute this program.
        "worker" => match parser.next()? {
            Some(Arg::Value(equipment)) => crate::lockstep::serve(&equipment.string()?),
            _ => return Err(lexopt::Error::from("no equipment").into()),
        },
        "helper" => match parser.next()? {
            None => announce_then_call()?,
            Some(Arg::Long("disable")) => disable(parser.value()?.parse()?)?,
            Some(other) => return Err(other.unexpected().into()),
        },
        _ => return Err(lexopt::Error::from(format!("no command {word:?}, see `help`")).into()),
    }
    Ok(ExitCode::SUCCESS)
}

fn list(system: &str) -> io::Result<()> {
    let claims = Claims::of(system);
    let mut out = io::stdout().lock();
    // A test ensures that the checks are exactly those of the checked claims.
    for claim in claims.iter().filter(|claim| claim.status() == Status::Checked) {
        writeln!(out, "{}\t{}\t{}", claim.id, claim.place(), claim.text)?;
    }
    Ok(())
}

fn claims() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for claim in Claims::of_system().iter() {
        let status = claim.status().word();
        writeln!(out, "{}\t{status}\t{}\t{}", claim.id, claim.place(), claim.text)?;
    }
    Ok(())
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
