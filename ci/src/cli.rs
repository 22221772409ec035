//! The command line: kcov-vm's commands and this project's own.

use clap::{Args, Parser, Subcommand};
use kcov_vm::cli::{self as vm, BuildOptions, General, OwnOptions, TestOptions, VmOptions};
use kcov_vm::report::Format;
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
    /// Alter the driver with each mutation operator and count the mutants that the suite misses
    #[command(after_help = MUTANTS_HELP)]
    Mutants(Box<MutantsOptions>),
    /// Write the generated pages and pictures of the reference
    Pages {
        /// Where to write them
        #[arg(value_name = "DIR")]
        directory: PathBuf,
    },
    /// Print the table of test runs on kernels that continuous integration does not have
    Results(ResultsOptions),
}

/// The text below the options of `mutants`.
const MUTANTS_HELP: &str = "\
For a netbsd target, name your tree with --source and give a command that builds
a kernel of it. In the command, {tree} stands for the tree and {kernel} for the
file where the command leaves the kernel:

    cargo vm mutants netbsd --sysroot sets/ --source usr/src \\
        --build 'cd {tree} && ./build.sh -u ... kernel=KCOV && cp ... {kernel}'

The runner writes the altered sys/kern/subr_kcov.c into the tree, and restores it
in the end, even if it is killed. Two kernels are the same code if their loaded
parts are equal except for the texts with the version, the number of the build
and its time.";

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
    /// Read the alterations from this directory instead of `mutants`
    #[arg(long, value_name = "DIR", hide = true)]
    pub data: Option<PathBuf>,
    /// Try only the named alterations, no mutants
    #[arg(long, conflicts_with = "sample")]
    pub named: bool,
    /// Try only N mutants and no named alterations
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// The seed that selects the sample
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "sample")]
    pub seed: u64,
    /// Try only mutants and alterations whose names contain WORDS; repeatable
    #[arg(long, value_name = "WORDS")]
    pub only: Vec<String>,
    /// Only list the mutants
    #[arg(long)]
    pub list: bool,
    /// Run the whole suite for each mutant, even after a failure, and then lockstep alone
    #[arg(long)]
    pub whole: bool,
    /// Save each outcome to this JSON file, and resume from it if kernel, suite and --whole are
    /// unchanged
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Retry the report's undetected mutants, for example on a kernel with more of its own checkers
    #[arg(long, requires = "report", conflicts_with_all = ["no_run", "list"])]
    pub again: bool,
    /// Run nothing; print the report's results
    #[arg(long, requires = "report", conflicts_with_all = ["whole", "list"])]
    pub no_run: bool,
    /// Write the documentation page
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// The number of parallel guests [default: several per processor for User-Mode Linux, otherwise
    /// one]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: Option<u32>,
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

#[cfg(test)]
mod tests {
    use super::{Cli, Command};
    use clap::Parser as _;

    #[test]
    fn lockstep_is_a_test_with_its_own_words_and_limit() {
        let line = ["kcov-vm", "lockstep", "linux-uml", "--operations", "1000", "--seed", "3"];
        let Command::Lockstep(options) = Cli::parse_from(line).command else {
            panic!("another command");
        };
        let test = options.into_test();
        assert_eq!(test.names, ["linux-uml"]);
        assert_eq!(test.suite, ["lockstep", "--operations=1000", "--seed=3"]);
        assert_eq!(test.vm.guest.time_limit, Some(140));
    }
}
