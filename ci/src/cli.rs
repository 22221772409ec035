//! The command line: kcov-vm's commands and this project's own.

use clap::{Args, Parser, Subcommand};
use kcov_vm::cli::{
    self as vm, BuildOptions, General, OwnOptions, ReportOptions, TestOptions, VmOptions,
};
use std::path::PathBuf;

/// Builds kernels, boots them, and runs test programs in them.
///
/// Exit status: 0 if everything ran and passed, 1 if a check failed, 2 if the command line is
/// wrong, 69 if there is no verdict (the message names the phase).
#[derive(Debug, Parser)]
#[command(name = "kcov-vm", bin_name = "cargo vm", version, max_term_width = 80)]
pub struct Cli {
    /// The command.
    #[command(subcommand)]
    pub command: Command,
    /// The options of all commands.
    #[command(flatten)]
    pub general: General,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// The commands of kcov-vm.
    #[command(flatten)]
    Vm(vm::Command),
    /// Run random operations in a guest and compare the kernel with the suite's model of the driver
    Lockstep(Box<LockstepOptions>),
    /// Compare the suite's claims with the targets' sources: report claims about
    /// removed features, and features without a claim
    Drift {
        /// The targets [default: all that have a source tree]
        #[arg(value_name = "TARGET")]
        names: Vec<String>,
        /// For netbsd targets: a NetBSD source tree
        #[arg(long, value_name = "DIR")]
        source: Option<PathBuf>,
        /// For netbsd targets: a copy of kcov(4), as mdoc or as formatted text
        #[arg(long, value_name = "FILE")]
        manual: Option<PathBuf>,
    },
    /// Alter the kernels and the library, and prove that checks notice each alteration
    #[command(after_help = MUTANTS_HELP)]
    Mutants(Box<MutantsOptions>),
    /// Write the generated pages and pictures of the reference
    Pages {
        /// Where to write them
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
}

/// The text below the options of `mutants`.
const MUTANTS_HELP: &str = "\
For the target netbsd, name your tree with --source and give a command that builds
a kernel of it. In the command, {tree} stands for the tree and {kernel} for the
file where the command leaves the kernel:

    cargo vm mutants netbsd --sysroot sets/ --source usr/src \\
        --build 'cd {tree} && ./build.sh -u ... kernel=KCOV && cp ... {kernel}'

The runner writes the altered sys/kern/subr_kcov.c into the tree, and restores it
in the end. If it is killed, the next run names the copy of the original.

Exit status: 1 if a check that an alteration names does not fail.";

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
    /// The report.
    #[command(flatten)]
    pub report: ReportOptions,
    /// Build and boot options.
    #[command(flatten)]
    pub vm: VmOptions,
}

impl LockstepOptions {
    /// Returns the equivalent test; its checks are the seeds.
    pub fn into_test(self) -> TestOptions {
        let Self { names, operations, seeds, report, mut vm } = self;
        // It suits slow guests.
        vm.guest.time_limit.get_or_insert(120 + operations * seeds.len() as u64 / 50);
        let mut suite = vec!["lockstep".to_string(), format!("--operations={operations}")];
        suite.extend(seeds.iter().map(|seed| format!("--seed={seed}")));
        TestOptions { names, suite, report, vm, ..TestOptions::default() }
    }
}

/// Options of `mutants`.
#[derive(Args, Debug)]
pub struct MutantsOptions {
    /// Targets, and words in the names of alterations [default: all targets with Linux on
    /// x86]
    #[arg(value_name = "TARGET|WORDS")]
    pub names: Vec<String>,
    /// Only alterations that make this check fail, and only this check: an id, a topic, or a
    /// pattern with `*`; repeatable
    #[arg(long = "check", value_name = "ID")]
    pub checks: Vec<String>,
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
