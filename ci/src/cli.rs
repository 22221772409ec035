//! The command line.

mod programs;
mod suite;
mod vm;

pub use programs::{
    CarryOptions, ExecOptions, PlaceOptions, RunnerOptions, StyleOptions, TraceOptions,
};
pub use suite::{LockstepOptions, MutantsOptions, TestOptions};
pub use vm::{AccelChoice, BuildOptions, GuestOptions, VmOptions};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Builds kernels, boots them, and runs test programs in them.
///
/// Exit status: 0 if everything ran and passed, 1 if a check failed, 2 if the
/// command line is wrong, 69 if there is no verdict (the phase is named).
#[derive(Debug, Parser)]
#[command(name = "kcov-vm", bin_name = "cargo vm", version, max_term_width = 80)]
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
    /// Show the kernel's log, how long the steps took, and what targets declare
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
    /// Print what decides of a target's kernel, and the key that comes of it
    Key {
        /// The target
        #[arg(value_name = "TARGET")]
        name: String,
        /// Of the kernel of this tree or tarball instead of the target's package
        #[arg(long, value_name = "DIR|TARBALL")]
        source: Option<PathBuf>,
    },
    /// Remove sources, compilers and kernels that no target needs now, and logs
    /// of runs, if they are old
    Clean {
        /// Only say what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Old is what was made more than so many days ago
        #[arg(long, value_name = "N", default_value_t = 7)]
        days: u64,
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
