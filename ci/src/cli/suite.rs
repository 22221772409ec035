//! Options of the commands that run the suite.

use super::vm::{BuildOptions, OwnOptions, VmOptions};
use crate::report::Format;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `test`.
#[derive(Args, Debug)]
pub struct TestOptions {
    /// The targets [default: the default targets of `list`]
    #[arg(value_name = "TARGET")]
    pub names: Vec<String>,
    /// Test all targets and print one table at the end. A target that lacks a required option is
    /// reported as not run; this fails the run only if you name the target too
    #[arg(long, conflicts_with = "kernel")]
    pub all: bool,
    /// Use N processors for guests [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: Option<u32>,
    /// Run only this check, the checks of this topic (the ids that begin with it and a dot), or the
    /// checks that match this pattern with `*`; may be repeated
    #[arg(long = "check", value_name = "ID|TOPIC|PATTERN", conflicts_with = "program")]
    pub checks: Vec<String>,
    /// Skip the remaining checks after the first failure
    #[arg(long, conflicts_with = "program")]
    pub fail_fast: bool,
    /// Run this KTAP program instead of the suite
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Arguments for the program
    #[arg(last = true, requires = "program", value_name = "ARGS")]
    pub arguments: Vec<OsString>,
    /// The suite's arguments instead of `run --format ktap`.
    #[arg(skip)]
    pub suite: Vec<String>,
    /// The report's format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the report to a file, and the text format to standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Build and boot options.
    #[command(flatten)]
    pub vm: VmOptions,
}

/// Options of `lockstep`.
#[derive(Args, Debug)]
pub struct LockstepOptions {
    /// The targets [default: the default targets of `list`]
    #[arg(value_name = "TARGET")]
    pub names: Vec<String>,
    /// The number of operations for each seed
    #[arg(long, value_name = "N", default_value_t = 20_000,
        value_parser = clap::value_parser!(u64).range(1..))]
    pub operations: u64,
    /// The seed of a sequence of operations; may be repeated
    #[arg(long = "seed", value_name = "S", default_value = "1")]
    pub seeds: Vec<u64>,
    /// The report's format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the report to a file, and the text format to standard output
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Build and boot options.
    #[command(flatten)]
    pub vm: VmOptions,
}

/// Options of `results`.
#[derive(Args, Debug)]
pub struct ResultsOptions {
    /// Add the runs in this JSON report of `cargo vm test`
    #[arg(long, value_name = "REPORT", requires = "kernel")]
    pub add: Option<PathBuf>,
    /// The origin of the kernel of --add, for the table; a run with the same words is replaced
    #[arg(long, value_name = "WORDS", requires = "add")]
    pub kernel: Option<String>,
    /// Write the documentation page
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
}

impl LockstepOptions {
    /// The default time limit in seconds. It suits slow guests.
    pub fn limit(operations: u64, seeds: usize) -> u64 {
        120 + operations * seeds as u64 / 50
    }

    /// Returns the equivalent test; its checks are the seeds.
    pub fn into_test(self) -> TestOptions {
        let Self { names, operations, seeds, format, report, mut vm } = self;
        vm.guest.time_limit.get_or_insert(Self::limit(operations, seeds.len()));
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
    /// Try only the named alterations, no mutants
    #[arg(long, conflicts_with = "sample")]
    pub named: bool,
    /// Try only N mutants and no named alterations
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// The seed that selects the sample
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "sample")]
    pub seed: u64,
    /// Try only mutants and alterations with WORDS in their names
    #[arg(long, value_name = "WORDS")]
    pub only: Option<String>,
    /// Only list the mutants
    #[arg(long)]
    pub list: bool,
    /// Run the whole suite for each mutant, even after a failure, and then lockstep alone
    #[arg(long)]
    pub whole: bool,
    /// Write the outcomes to a JSON file after each alteration. A report on the same kernel and
    /// suite is continued
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Run nothing; print the report's results
    #[arg(long, requires = "report", conflicts_with_all = ["whole", "list"])]
    pub no_run: bool,
    /// Write the documentation page
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The number of parallel guests
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: u32,
    /// Limit a guest's program to N seconds instead of the target's limit
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// For netbsd targets: the shell command that builds a kernel of the tree --source
    #[arg(long = "build", value_name = "COMMAND")]
    pub command: Option<String>,
    /// The kernel's description.
    #[command(flatten)]
    pub own: OwnOptions,
    /// Build options.
    #[command(flatten)]
    pub build: BuildOptions,
}
