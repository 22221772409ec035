//! The command line.

mod programs;
mod test;
mod vm;

pub use programs::{ExecOptions, FuzzOptions, ProgramOptions, TraceOptions};
pub use test::TestOptions;
pub use vm::{BuildOptions, GuestOptions, OwnOptions, VmOptions};

use clap::{Args, Parser, Subcommand};
use std::path::PathBuf;

/// Builds kernels, boots them, and runs test programs in them.
///
/// Exit status: 0 if everything ran and passed, 1 if a check failed, 2 if the command line is
/// wrong, 69 if there is no verdict (the message names the phase).
#[derive(Debug, Parser)]
#[command(version, max_term_width = 80)]
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
    /// Show the kernel log and the time of each step
    #[arg(short, long, global = true)]
    pub verbose: bool,
    /// Use another list of targets
    #[arg(long, global = true, value_name = "FILE", hide = true, env = "KCOV_VM_TARGETS")]
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
        /// Build options.
        #[command(flatten)]
        build: BuildOptions,
    },
    /// Lock the newest package versions in targets.lock and report what changed
    Lock,
    /// Remove old logs, and sources, compilers and kernels that were not used lately
    Clean {
        /// Only list what would be removed
        #[arg(long)]
        dry_run: bool,
        /// Remove only what was last used more than N days ago
        #[arg(long, value_name = "N", default_value_t = 7)]
        days: u64,
    },
    /// Run the test suite, or another KTAP program, on the targets
    Test(Box<TestOptions>),
    /// Run a program in a guest; pass on its output and exit status
    #[command(after_help = LIMITS)]
    Exec(Box<ExecOptions>),
    /// Run a shell, or another program, in a guest on this terminal
    #[command(after_help = LIMITS, mut_arg("program", |program| program.required(false).help(
        "The program and its arguments [default: sh, with some programs of this machine]")))]
    Shell(Box<ProgramOptions>),
    /// Run a fuzzer in guests; keep its corpus and its crashes, each tried again and made smaller
    #[command(after_help = LIMITS)]
    Fuzz(Box<FuzzOptions>),
    /// Run a program in a guest and report the kernel code that its threads and children execute
    #[command(after_help = LIMITS, mut_arg("name", |name| {
        name.help("The target; linux-uml-dwarf has source lines")
    }))]
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
    #[command(after_help = format!("{RUNNER_HELP}\n\n{LIMITS}"), mut_arg("program", |program| {
        program.last(false).trailing_var_arg(true).allow_hyphen_values(true)
    }))]
    Runner {
        /// Leave out the crate's workspace
        #[arg(long)]
        no_tree: bool,
        /// The program.
        #[command(flatten)]
        exec: Box<ExecOptions>,
    },
}

/// The text below the options of `env`.
const ENV_HELP: &str = "\
For a shell:

    eval \"$(kcov-vm env linux-uml)\"
    cargo test

A netbsd target needs --sysroot to build programs, and --kernel to run them.";

/// The text below the options of `runner`.
const RUNNER_HELP: &str = "\
The guest has a copy of the crate's workspace and of OUT_DIR at the same paths;
the working directory is this one. The program gets the variables CARGO_*, RUST_*
and NEXTEST*, those of the build script, and KCOV_VM_SCRATCH, which names a
directory that it can write to.

    RUNNER='kcov-vm runner linux-uml'
    CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER=$RUNNER cargo test
    go test -exec 'kcov-vm runner linux-uml --carry .'";

/// The text below the options of the commands that run a user's program.
const LIMITS: &str = "docs/src/test-your-fuzzer.md names the cure for what a guest runs out of.";
