//! `lockstep`: one KTAP result for each seed.

use super::{EXIT_UNAVAILABLE, run};
use crate::lockstep::{Lockstep, Verdict};
use lexopt::{Arg, Parser, ValueExt as _};
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::process::ExitCode;

/// The default number of operations.
const MANY: NonZeroU64 = NonZeroU64::new(10_000).expect("not 0");

/// The options of `lockstep`.
pub(super) struct Request {
    operations: NonZeroU64,
    seeds: Vec<u64>,
    kernel: run::Options,
}

pub(super) fn request(parser: &mut Parser) -> Result<Request, lexopt::Error> {
    let (mut operations, mut seeds, mut kernel) = (MANY, Vec::new(), run::Options::new());
    while let Some(arg) = parser.next()? {
        let Arg::Long(name) = arg else { return Err(arg.unexpected()) };
        let name = name.to_owned();
        match name.as_str() {
            "operations" => operations = parser.value()?.parse()?,
            "seed" => seeds.push(parser.value()?.parse()?),
            name if kernel.take(name, parser)? => {}
            name => return Err(lexopt::Error::UnexpectedOption(format!("--{name}"))),
        }
    }
    if seeds.is_empty() {
        seeds.push(1);
    }
    Ok(Request { operations, seeds, kernel })
}

pub(super) fn run(request: &Request) -> io::Result<ExitCode> {
    let mut out = io::stdout();
    writeln!(out, "KTAP version 1\n1..{}", request.seeds.len())?;
    let bail_out = |why: &str| {
        writeln!(io::stdout(), "Bail out! {why}")?;
        Ok(ExitCode::from(EXIT_UNAVAILABLE))
    };
    let (kernel, target) = match run::prepare(&request.kernel) {
        Ok(prepared) => prepared,
        Err(why) => return bail_out(&why),
    };
    writeln!(out, "# kernel: {}", kernel.name)?;
    writeln!(out, "# features: {}", run::words(&target.features))?;
    let mut lockstep = match Lockstep::new(&request.kernel.device, &target.features) {
        Ok(lockstep) => lockstep,
        Err(why) => return bail_out(&why),
    };
    let mut failed = false;
    for (number, &seed) in (1..).zip(&request.seeds) {
        let note = |text: &str| {
            for line in text.lines() {
                writeln!(io::stdout(), "# {line}")?;
            }
            io::stdout().flush()
        };
        let passed = match lockstep.run(seed, request.operations.get(), note)? {
            Verdict::Agreed => true,
            Verdict::Parted => false,
            Verdict::None(why) => return bail_out(&why),
        };
        failed |= !passed;
        writeln!(out, "{} {number} lockstep.seed-{seed}", if passed { "ok" } else { "not ok" })?;
        out.flush()?;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
