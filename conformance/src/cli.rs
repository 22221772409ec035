//! The command line.

mod lockstep;
mod run;

use crate::claims::{Claims, Status};
use crate::declare::{Declaration, SYSTEMS};
use crate::kernel::Version;
use crate::plan;
use lexopt::{Arg, Parser, ValueExt as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

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

fn command(parser: &mut Parser) -> Result<ExitCode, Stop> {
    let word = match parser.next()? {
        Some(Arg::Value(word)) => word.string()?,
        None | Some(Arg::Long("help") | Arg::Short('h')) => "help".to_owned(),
        Some(other) => return Err(other.unexpected().into()),
    };
    match word.as_str() {
        "run" => Ok(run::run(&run::request(parser)?)?),
        "lockstep" => Ok(lockstep::run(&lockstep::request(parser)?)?),
        "list" => {
            let system = system(parser)?;
            Ok(list(system).map(|()| ExitCode::SUCCESS)?)
        }
        "plan" => {
            let (kernel, target) = target(parser)?;
            plan::write(kernel, &target, &mut io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        "claims" => nothing_more(parser, claims),
        "help" => nothing_more(parser, || writeln!(io::stdout(), "{USAGE}")),
        // Internal commands.
        "worker" => match parser.next()? {
            Some(Arg::Value(equipment)) => crate::lockstep::serve(&equipment.string()?),
            _ => Err(lexopt::Error::from("no equipment").into()),
        },
        "helper" => {
            match parser.next()? {
                None => crate::helper::announce_then_call()?,
                Some(Arg::Long("disable")) => crate::helper::disable(parser.value()?.parse()?)?,
                Some(other) => return Err(other.unexpected().into()),
            }
            Ok(ExitCode::SUCCESS)
        }
        _ => Err(lexopt::Error::from(format!("no command {word:?}, see `help`")).into()),
    }
}

fn nothing_more(
    parser: &mut Parser,
    print: impl FnOnce() -> io::Result<()>,
) -> Result<ExitCode, Stop> {
    match parser.next()? {
        Some(other) => Err(other.unexpected().into()),
        None => Ok(print().map(|()| ExitCode::SUCCESS)?),
    }
}

fn target(parser: &mut Parser) -> Result<(Version, Declaration), lexopt::Error> {
    let (mut kernel, mut declared) = (None, None);
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("declare") => {
                declared = Some(Declaration::parse(&parser.value()?.string()?)?);
            }
            Arg::Long("release") => {
                let release = parser.value()?.string()?;
                let version = Version::of_release(&release);
                kernel = Some(version.ok_or(format!("--release: no version in {release:?}"))?);
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok((kernel.ok_or("--release is missing")?, declared.ok_or("--declare is missing")?))
}

fn system(parser: &mut Parser) -> Result<&'static str, lexopt::Error> {
    let mut system = crate::system::checks::WORD;
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("system") => {
                let word = parser.value()?.string()?;
                let known = SYSTEMS.iter().find(|known| **known == word);
                system = known.ok_or_else(|| format!("--system: {word:?} is not known"))?;
            }
            other => return Err(other.unexpected()),
        }
    }
    Ok(system)
}

fn default_device() -> PathBuf {
    PathBuf::from(crate::raw::DEVICE)
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
