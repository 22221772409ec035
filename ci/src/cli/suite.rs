//! Commands that run the suite.

use super::vm::{BuildOptions, VmOptions};
use crate::report::Format;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `test`.
#[derive(Args, Debug)]
pub struct TestOptions {
    /// The targets [default: the default ones of `list`]
    #[arg(value_name = "TARGET")]
    pub names: Vec<String>,
    /// All targets, with one table at the end. A target that needs something
    /// which is not given is shown as not run, and fails the run only if it is
    /// named as well
    #[arg(long, conflicts_with = "kernel")]
    pub all: bool,
    /// So many processors for guests at once [default: those of the host]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: Option<u32>,
    /// Run only this check, the checks of this topic (the beginning of ids, up
    /// to a dot), or those that match this pattern with `*`; may be repeated
    #[arg(long = "check", value_name = "ID|TOPIC|PATTERN", conflicts_with = "program")]
    pub checks: Vec<String>,
    /// Skip what follows the first check that fails
    #[arg(long, conflicts_with = "program")]
    pub fail_fast: bool,
    /// Run this program, which prints KTAP, instead of the suite
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Arguments for the program
    #[arg(last = true, requires = "program", value_name = "ARGS")]
    pub arguments: Vec<OsString>,
    /// What the suite is told instead of `run --format ktap`.
    #[arg(skip)]
    pub suite: Vec<String>,
    /// The form of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the report to a file, and the text form to standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How to build and boot.
    #[command(flatten)]
    pub vm: VmOptions,
}

/// Options of `lockstep`.
#[derive(Args, Debug)]
pub struct LockstepOptions {
    /// The targets [default: the default ones of `list`]
    #[arg(value_name = "TARGET")]
    pub names: Vec<String>,
    /// How many operations for each seed
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: u64,
    /// Which operations; may be repeated
    #[arg(long = "seed", value_name = "S", default_value = "1")]
    pub seeds: Vec<u64>,
    /// The form of the report
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the report to a file, and the text form to standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// How to build and boot.
    #[command(flatten)]
    pub vm: VmOptions,
}

impl LockstepOptions {
    /// The same as a test, whose checks are the seeds. The time limit is one
    /// for slow guests, if none is given.
    pub fn into_test(self) -> TestOptions {
        let Self { names, operations, seeds, format, report, mut vm } = self;
        let slow = 120 + operations * seeds.len() as u64 / 50;
        vm.guest.time_limit.get_or_insert(slow);
        let mut suite = vec!["lockstep".to_string(), format!("--operations={operations}")];
        suite.extend(seeds.iter().map(|seed| format!("--seed={seed}")));
        TestOptions {
            names,
            all: false,
            guests: None,
            checks: Vec::new(),
            fail_fast: false,
            program: None,
            arguments: Vec::new(),
            suite,
            format,
            report,
            vm,
        }
    }
}

/// Options of `mutants`.
#[derive(Args, Debug)]
pub struct MutantsOptions {
    /// The target
    #[arg(value_name = "TARGET")]
    pub name: String,
    /// No mutants, only what is altered by name
    #[arg(long, conflicts_with = "sample")]
    pub named: bool,
    /// Only so many of the mutants, and nothing that is altered by name
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// Chooses which
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "sample")]
    pub seed: u64,
    /// Only mutants and alterations with these words in their names
    #[arg(long, value_name = "WORDS")]
    pub only: Option<String>,
    /// Name the mutants and do nothing
    #[arg(long)]
    pub list: bool,
    /// Run the suite to its end for each mutant, not to the first red check
    #[arg(long)]
    pub whole: bool,
    /// Write what came of each alteration to a file (JSON), after each of them;
    /// go on from there if it is of the same kernel and suite
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Run nothing: tell what the report says
    #[arg(long, requires = "report", conflicts_with_all = ["whole", "list"])]
    pub no_run: bool,
    /// Write the page for the documentation
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// So many guests at once
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: u32,
    /// Limit a guest's program to so many seconds, instead of the target's limit
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
}
