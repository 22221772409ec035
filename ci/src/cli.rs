//! The command line.

mod programs;
mod suite;
mod vm;

pub use programs::{
    CarryOptions, ExecOptions, PlaceOptions, RunnerOptions, StyleOptions, TraceOptions,
};
pub use suite::{LockstepOptions, MutantsOptions, ResultsOptions, TestOptions};
pub use vm::{AccelChoice, BuildOptions, GuestOptions, OwnOptions, VmOptions};

use clap::{Args, Parser, Subcommand};
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

/// Options of all commands.
#[derive(Args, Debug)]
pub struct General {
    /// The directory for sources, kernels and logs [default: kcov-vm in the user's cache directory]
    #[arg(long, global = true, value_name = "DIR", env = "KCOV_VM_CACHE", hide_env_values = true)]
    pub cache: Option<PathBuf>,
    /// Show the kernel log, the time of each step and the targets' declared words
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Use another list of targets
    #[arg(long, global = true, value_name = "FILE", hide = true)]
    pub targets: Option<PathBuf>,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// List the targets
    List,
    /// Build the targets' kernels
    Build {
        /// The targets [default: the default targets of `list`]
        #[arg(value_name = "TARGET")]
        names: Vec<String>,
        /// Build options.
        #[command(flatten)]
        build: BuildOptions,
    },
    /// Print the ingredients and the key of a target's kernel
    Key {
        /// The target
        #[arg(value_name = "TARGET")]
        name: String,
        /// Use this kernel tree or tarball instead of the target's package
        #[arg(long, value_name = "DIR|TARBALL")]
        source: Option<PathBuf>,
    },
    /// Lock the newest package versions in targets.lock and report what changed
    Lock,
    /// Remove old logs, and old sources, compilers and kernels that no target needs
    Clean {
        /// Only list what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Remove only what was made more than N days ago
        #[arg(long, value_name = "N", default_value_t = 7)]
        days: u64,
    },
    /// Run the conformance suite, or another KTAP program, on the targets
    Test(Box<TestOptions>),
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
    /// Print the table of test runs on kernels that continuous integration does not have
    Results(ResultsOptions),
    /// Run a program in a guest; pass on its output and exit status
    Exec(Box<ExecOptions>),
    /// Run a program in a guest and report the kernel code that its threads and children execute
    Trace(Box<TraceOptions>),
    /// Print the variables with which cargo builds programs for a target and runs them there
    #[command(after_help = ENV_HELP)]
    Env {
        /// The target
        #[arg(value_name = "TARGET")]
        name: String,
        /// Build and boot options.
        #[command(flatten)]
        vm: Box<VmOptions>,
    },
    /// Like `exec`, for cargo: set it as the `runner` of a target in any crate's cargo
    /// configuration
    #[command(after_help = RUNNER_HELP)]
    Runner(Box<RunnerOptions>),
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

/// The text below the options of `env`.
const ENV_HELP: &str = "\
For a shell:

    eval \"$(kcov-vm env linux-uml)\"
    cargo test

A netbsd target needs --sysroot to build programs, and --kernel to run them.";

/// The text below the options of `runner`.
const RUNNER_HELP: &str = "\
The guest has a copy of the crate's directory (CARGO_MANIFEST_DIR) at the same
path; it is the working directory. The program gets the variables CARGO_*, RUST_*
and NEXTEST*, and KCOV_VM_SCRATCH names a directory that it can write to.

    RUNNER='kcov-vm runner linux-uml'
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$RUNNER cargo test";

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
