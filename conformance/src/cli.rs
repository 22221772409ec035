//! The command line.

mod lockstep;
mod request;
mod run;
mod select;

use crate::claims::{Claims, Status};
use crate::declare::{ABSENT, Declaration, Feature, SYSTEMS};
use crate::drift::Sources;
use crate::kernel::Version;
use crate::{drift, plan, reference};
use lexopt::{Arg, Parser, ValueExt as _};
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

const USAGE: &str = "\
Proves on the running kernel what is promised about its coverage device.

Usage: kcov-conformance <command>

  list               the checks: id, source, claim
      --system WORD      those for another system, linux or netbsd
  claims             the registry: id, status, source, claim
  plan               which checks a run comes to, and why it skips the others
      --declare WORDS    what the target's kernel has, comma-separated
      --release R        what the kernel says to be, such as 7.3.4
  run [ID...]        runs all checks, or these; ID may be a topic such as `enable`
      --declare WORDS    what the target's kernel has, comma-separated
      --unproved         does not prove that: for kernels that were altered
      --device PATH      where the device is
      --format ktap|json
      --time-limit S     seconds that a check may take, 60 unless said
      --first IDS        these checks before the others, comma-separated
      --fail-fast        after the first red check the others are skipped
  lockstep           does random operations, and compares the kernel with the model
      --operations N     how many for each seed
      --seed S           may be repeated
      --declare, --device   as above
  drift              compares the registry with what it was read from
      --source DIR       a source tree of Linux or of NetBSD
      --manual FILE      a copy of kcov(4), as mdoc or as `man` prints it
  reference DIR      writes the generated pages and pictures there
  help               this text

Exit status: 0 all passed, 1 some failed, 2 wrong command line, 69 no verdict.";

/// The command line is wrong.
pub const EXIT_USAGE: u8 = 2;
/// The machinery could give no verdict.
pub const EXIT_UNAVAILABLE: u8 = 69;

/// Runs the command that the process was started with.
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

/// Why a command did not come to its end.
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
        "run" => Ok(run::run(&request::request(parser)?)?),
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
        "drift" => {
            let same = drift::report(&sources(parser)?, &mut io::stdout().lock())?;
            Ok(if same { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        "reference" => {
            let directory = parser.value()?;
            nothing_more(parser, || reference::write(directory.as_ref()))
        }
        "help" => nothing_more(parser, || writeln!(io::stdout(), "{USAGE}")),
        // What the suite says to itself.
        "probe" => {
            let (word, device) = operand_and_device(parser)?;
            let feature = Feature::ALL.iter().find(|feature| feature.word() == word);
            let &feature =
                feature.ok_or_else(|| lexopt::Error::from(format!("no feature {word:?}")))?;
            match crate::raw::probe(feature, &device) {
                Ok(true) => Ok(ExitCode::SUCCESS),
                Ok(false) => Ok(ExitCode::from(ABSENT)),
                Err(errno) => Err(io::Error::other(errno.to_string()).into()),
            }
        }
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

fn operand_and_device(parser: &mut Parser) -> Result<(String, PathBuf), lexopt::Error> {
    let mut operand = None;
    let mut device = default_device();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Value(word) => operand = Some(word.string()?),
            Arg::Long("device") => device = parser.value()?.into(),
            other => return Err(other.unexpected()),
        }
    }
    Ok((operand.ok_or("an operand is missing")?, device))
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

fn sources(parser: &mut Parser) -> Result<Sources, lexopt::Error> {
    let mut sources = Sources::default();
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("source") => sources.tree = Some(parser.value()?.into()),
            Arg::Long("manual") => sources.manual = Some(parser.value()?.into()),
            other => return Err(other.unexpected()),
        }
    }
    if sources.tree.is_none() && sources.manual.is_none() {
        return Err("--source or --manual is missing".into());
    }
    Ok(sources)
}

fn system(parser: &mut Parser) -> Result<&'static str, lexopt::Error> {
    let mut system = crate::system::WORD;
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
    // A test sees to it that the checks are just those of the checked claims.
    for claim in claims.iter().filter(|claim| claim.status == Status::Checked) {
        writeln!(out, "{}\t{}\t{}", claim.id, claim.place(), claim.text)?;
    }
    Ok(())
}

fn claims() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for claim in Claims::of_system().iter() {
        let status = match claim.status {
            Status::Checked => "checked",
            Status::Unchecked => "unchecked",
            Status::Informative => "informative",
            Status::Untestable => "untestable",
        };
        writeln!(out, "{}\t{status}\t{}\t{}", claim.id, claim.place(), claim.text)?;
    }
    Ok(())
}
