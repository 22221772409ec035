//! The command line.

use crate::report::Format;
use crate::snapshot::Snapshots;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::ffi::OsString;
use std::path::PathBuf;

/// Builds kernels, boots them, and runs test programs in them.
///
/// Exit status: 0 if everything ran and passed, 1 if a check failed, 2 if the
/// command line is wrong, 69 if there is no verdict (the phase is named).
#[derive(Debug, Parser)]
#[command(name = "cargo vm", bin_name = "cargo vm", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// For all commands.
    #[command(flatten)]
    pub general: General,
}

/// Options of all commands.
#[derive(Args, Debug)]
pub struct General {
    /// Where sources, kernels and logs are kept [default: kcov-vm in the
    /// user's cache directory]
    #[arg(long, global = true, value_name = "DIR", env = "KCOV_VM_CACHE", hide_env_values = true)]
    pub cache: Option<PathBuf>,
    /// Show the kernel's log, and how long the steps took
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Another list of targets
    #[arg(long, global = true, value_name = "FILE", hide = true)]
    pub targets: Option<PathBuf>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show the targets
    List,
    /// Build the targets' kernels
    Build {
        /// The targets [default: the default ones of `list`]
        #[arg(value_name = "TARGET")]
        names: Vec<String>,
        /// How to build.
        #[command(flatten)]
        build: BuildOptions,
    },
    /// Run the conformance suite, or another KTAP program, on the targets
    Test(Box<TestOptions>),
    /// Do random operations in a guest, and compare what the kernel does with
    /// the suite's model of the driver
    Lockstep(Box<LockstepOptions>),
    /// Compare the suite's registry with the targets' sources: what is claimed
    /// and gone, what is said and not claimed
    Drift {
        /// The targets [default: all that have a source tree]
        #[arg(value_name = "TARGET")]
        names: Vec<String>,
        /// For netbsd targets: a source tree of NetBSD
        #[arg(long, value_name = "DIR")]
        source: Option<PathBuf>,
        /// For netbsd targets: a copy of kcov(4), as mdoc or as `man` prints
        /// it
        #[arg(long, value_name = "FILE")]
        manual: Option<PathBuf>,
    },
    /// Alter the driver in every way that the operators know, and count what the
    /// suite does not notice
    Mutants(MutantsOptions),
    /// Run a program in a guest, with its output and exit status
    Exec(Box<ExecOptions>),
    /// Run a program in a guest and say which kernel code its threads and
    /// children went through
    Trace(Box<TraceOptions>),
    /// The same as `exec` for cargo, which gives the program and its arguments: as the
    /// `runner` of a target in any crate's configuration
    #[command(after_help = RUNNER_HELP)]
    Runner(Box<RunnerOptions>),
}

/// What stands below the options of `runner`.
const RUNNER_HELP: &str = "\
The program finds the directory of its crate (CARGO_MANIFEST_DIR) read-only at
the same place, with it as the working directory; the variables CARGO_*, RUST_*
and NEXTEST*; and a directory to write to, KCOV_VM_SCRATCH.

    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER='kcov-vm runner linux-uml' cargo test";

/// Options of `exec`.
#[derive(Args, Debug)]
pub struct ExecOptions {
    /// The target
    #[arg(value_name = "TARGET")]
    pub name: String,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM ARGS")]
    pub program: Vec<OsString>,
    /// Bring back what the program leaves in the directory KCOV_VM_SCRATCH
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// What it finds there.
    #[command(flatten)]
    pub carry: CarryOptions,
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
    /// How to boot.
    #[command(flatten)]
    pub guest: GuestOptions,
}

/// Options of `runner`.
#[derive(Args, Debug)]
pub struct RunnerOptions {
    /// The target
    #[arg(value_name = "TARGET")]
    pub name: String,
    /// The program and its arguments
    #[arg(
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true,
        value_name = "PROGRAM ARGS"
    )]
    pub program: Vec<OsString>,
    /// Leave out the directory of the crate
    #[arg(long)]
    pub no_tree: bool,
    /// Bring back what the program leaves in the directory KCOV_VM_SCRATCH
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// What it finds there.
    #[command(flatten)]
    pub carry: CarryOptions,
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
    /// How to boot.
    #[command(flatten)]
    pub guest: GuestOptions,
}

/// What a program finds in the guest.
#[derive(Args, Debug, Default)]
pub struct CarryOptions {
    /// Hand on a variable of the environment, or set it; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Take this file or directory into the guest, to the same path; a program
    /// comes with its libraries, a directory is read-only. May be repeated
    #[arg(long, value_name = "PATH")]
    pub carry: Vec<PathBuf>,
}

/// Options of `trace`.
#[derive(Args, Debug)]
pub struct TraceOptions {
    /// The target; linux-uml-dwarf has source lines
    #[arg(value_name = "TARGET")]
    pub name: String,
    /// The program, by its path or as found in PATH, and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM ARGS")]
    pub program: Vec<OsString>,
    /// What is printed.
    #[command(flatten)]
    pub style: StyleOptions,
    /// Write what was collected, for `kcov-trace --read`
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// Write a tracefile for genhtml(1); the target has to have source lines
    #[arg(long, value_name = "FILE")]
    pub lcov: Option<PathBuf>,
    /// Write a file for the coverage plugins of disassemblers
    #[arg(long, value_name = "FILE")]
    pub drcov: Option<PathBuf>,
    /// The size of each thread's buffer
    #[arg(long, value_name = "N")]
    pub words: Option<u64>,
    /// What it finds there.
    #[command(flatten)]
    pub carry: CarryOptions,
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
    /// How to boot.
    #[command(flatten)]
    pub guest: GuestOptions,
}

/// What a trace prints: functions, unless one of these is given.
#[derive(Args, Debug)]
#[group(multiple = false)]
pub struct StyleOptions {
    /// Print a line per program counter, with the functions inlined there
    #[arg(long)]
    pub lines: bool,
    /// Print the program counters as recorded
    #[arg(long)]
    pub pcs: bool,
    /// Print nothing
    #[arg(long)]
    pub quiet: bool,
}

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
    /// Run this check only; may be repeated
    #[arg(long = "check", value_name = "ID", conflicts_with = "program")]
    pub checks: Vec<String>,
    /// Skip what follows the first check that fails
    #[arg(long, conflicts_with_all = ["program", "snapshots"])]
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
    /// Compare the results with the snapshots of the targets, or write these
    #[arg(long, value_enum, value_name = "WHAT", conflicts_with_all = ["checks", "program"])]
    pub snapshots: Option<Snapshots>,
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
    /// How to boot.
    #[command(flatten)]
    pub guest: GuestOptions,
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
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
    /// How to boot.
    #[command(flatten)]
    pub guest: GuestOptions,
}

impl LockstepOptions {
    /// The same as a test, whose checks are the seeds. The time limit is one
    /// for slow guests, if none is given.
    pub fn into_test(self) -> TestOptions {
        let Self { names, operations, seeds, format, report, build, mut guest } = self;
        let slow = 120 + operations * seeds.len() as u64 / 50;
        guest.time_limit.get_or_insert(slow);
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
            snapshots: None,
            build,
            guest,
        }
    }
}

/// Options of `mutants`.
#[derive(Args, Debug)]
pub struct MutantsOptions {
    /// The target
    #[arg(value_name = "TARGET")]
    pub name: String,
    /// Only so many of the mutants
    #[arg(long, value_name = "N")]
    pub sample: Option<usize>,
    /// Chooses which
    #[arg(long, value_name = "NUMBER", default_value_t = 1, requires = "sample")]
    pub seed: u64,
    /// Only mutants with these words in their names
    #[arg(long, value_name = "WORDS")]
    pub only: Option<String>,
    /// Name the mutants and do nothing
    #[arg(long)]
    pub list: bool,
    /// Write what came of each mutant to a file (JSON), after each of them
    #[arg(long, value_name = "FILE")]
    pub report: Option<PathBuf>,
    /// Take over what this earlier report says, and run only those that survived
    /// then or have not been run
    #[arg(long, value_name = "FILE")]
    pub again: Option<PathBuf>,
    /// Run nothing: report on what the earlier report says
    #[arg(long, requires = "again", conflicts_with = "report")]
    pub no_run: bool,
    /// Write the page for the documentation
    #[arg(long, value_name = "FILE")]
    pub page: Option<PathBuf>,
    /// So many guests at once
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: u32,
    /// How to build.
    #[command(flatten)]
    pub build: BuildOptions,
}

/// Options for building kernels.
#[derive(Args, Debug, Default)]
pub struct BuildOptions {
    /// Build from this kernel tree or tarball instead of the target's package
    #[arg(long, value_name = "DIR|TARBALL")]
    pub source: Option<PathBuf>,
    /// Look for a newer package now, not once a day
    #[arg(long, conflicts_with = "source")]
    pub refresh: bool,
    /// Jobs for make [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: Option<u32>,
}

/// Options for booting kernels.
#[derive(Args, Debug)]
pub struct GuestOptions {
    /// Boot this kernel; nothing is built
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "refresh", "jobs"])]
    pub kernel: Option<PathBuf>,
    /// The same for netbsd targets only, and so for --all [default:
    /// $KCOV_VM_NETBSD_KERNEL]
    #[arg(long, value_name = "FILE")]
    pub netbsd_kernel: Option<PathBuf>,
    /// usr/lib of NetBSD's comp set, or a directory with that or with the
    /// packed set in it: what programs for netbsd targets are linked against
    /// [default: $KCOV_VM_NETBSD_SYSROOT]
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Which ABI a netbsd target's kernel has [default: the newest]
    #[arg(long, value_name = "NUMBER")]
    pub abi: Option<String>,
    /// More words for the suite on what a kernel of yours has, comma-separated
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub declare: Vec<String>,
    /// What the kernel's release must begin with, instead of what the target
    /// says
    #[arg(long, value_name = "PREFIX")]
    pub declare_release: Option<String>,
    /// Limit booting, and then the program, to so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// What executes QEMU guests; `auto` boots one under KVM to find out
    #[arg(long, value_enum, default_value_t, value_name = "ACCEL")]
    pub accel: AccelChoice,
}

/// What executes QEMU guests.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum AccelChoice {
    /// KVM if guests boot under it.
    #[default]
    Auto,
    /// The processor.
    Kvm,
    /// QEMU.
    Tcg,
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
        assert_eq!(test.guest.time_limit, Some(140));
    }
}
