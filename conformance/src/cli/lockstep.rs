//! `lockstep`: one KTAP result for each seed.

use super::{EXIT_UNAVAILABLE, default_device, run};
use crate::declare::Declaration;
use crate::lockstep::{Lockstep, Verdict};
use lexopt::{Arg, Parser, ValueExt as _};
use std::io::{self, Write as _};
use std::num::NonZeroU64;
use std::path::PathBuf;
use std::process::ExitCode;

/// The default number of operations.
const MANY: NonZeroU64 = NonZeroU64::new(10_000).expect("not 0");

/// The options of `lockstep`.
#[derive(Debug)]
pub(super) struct Request {
    operations: NonZeroU64,
    seeds: Vec<u64>,
    /// Whether to trust the declaration without probes.
    unproved: bool,
    declared: Option<Declaration>,
    device: PathBuf,
}

pub(super) fn request(parser: &mut Parser) -> Result<Request, lexopt::Error> {
    let mut request = Request {
        operations: MANY,
        seeds: Vec::new(),
        unproved: false,
        declared: None,
        device: default_device(),
    };
    while let Some(arg) = parser.next()? {
        match arg {
            Arg::Long("operations") => request.operations = parser.value()?.parse()?,
            Arg::Long("seed") => request.seeds.push(parser.value()?.parse()?),
            Arg::Long("unproved") => request.unproved = true,
            Arg::Long("declare") => {
                request.declared = Some(Declaration::parse(&parser.value()?.string()?)?);
            }
            Arg::Long("device") => request.device = parser.value()?.into(),
            other => return Err(other.unexpected()),
        }
    }
    if request.seeds.is_empty() {
        request.seeds.push(1);
    }
    Ok(request)
}

pub(super) fn run(request: &Request) -> io::Result<ExitCode> {
    let mut out = io::stdout();
    writeln!(out, "KTAP version 1\n1..{}", request.seeds.len())?;
    let bail_out = |why: &str| {
        writeln!(io::stdout(), "Bail out! {why}")?;
        Ok(ExitCode::from(EXIT_UNAVAILABLE))
    };
    let (kernel, target) =
        match run::prepare(&request.device, request.declared.as_ref(), request.unproved) {
            Ok(prepared) => prepared,
            Err(why) => return bail_out(&why),
        };
    writeln!(out, "# kernel: {}", kernel.name)?;
    writeln!(out, "# features: {}", run::words(&target.features))?;
    let mut lockstep = match Lockstep::new(&request.device, &target.features) {
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
