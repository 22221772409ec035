//! The command line.

use crate::report::Format;
use crate::target::Accel;
use clap::{Args, Parser, Subcommand};
use std::ffi::OsString;
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

/// Options for building kernels.
#[derive(Args, Clone, Debug, Default)]
pub struct BuildOptions {
    /// Build from this kernel tree instead of the target's package
    #[arg(long, value_name = "DIR")]
    pub source: Option<PathBuf>,
    /// Build with these kernel options, too: a file of lines CONFIG_X=y, or one of bpf, bridge,
    /// cgroup, coredump, fuse, loop, overlay. May be repeated
    #[arg(long, value_name = "FILE|NAME")]
    pub config: Vec<PathBuf>,
}

/// Options that describe a user's kernel.
#[derive(Args, Clone, Debug, Default)]
pub struct OwnOptions {
    /// The libraries to link programs for netbsd targets against: usr/lib of NetBSD's comp set, or
    /// a directory that contains it [default: $KCOV_VM_NETBSD_SYSROOT]
    #[arg(long, value_name = "DIR")]
    pub sysroot: Option<PathBuf>,
    /// Declare more features of your own kernel to the suite; comma-separated words
    #[arg(long, value_name = "WORDS", value_delimiter = ',')]
    pub declare: Vec<String>,
    /// The required beginning of the kernel's release, instead of the target's
    #[arg(long, value_name = "PREFIX")]
    pub declare_release: Option<String>,
}

/// Options for booting kernels.
#[derive(Args, Debug, Default)]
pub struct GuestOptions {
    /// Boot this kernel; build nothing [default for netbsd targets: $KCOV_VM_NETBSD_KERNEL]
    #[arg(long, value_name = "FILE", conflicts_with_all = ["source", "config"])]
    pub kernel: Option<PathBuf>,
    /// The kernel's description.
    #[command(flatten)]
    pub own: OwnOptions,
    /// Limit booting to N seconds, and then the program as well
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    pub time_limit: Option<u64>,
    /// The guest's memory in MiB instead of the target's
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u32).range(64..))]
    pub memory: Option<u32>,
    /// The guest's processors instead of the target's
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=64))]
    pub smp: Option<u32>,
    /// How to run QEMU guests [default: KVM if a guest boots under it, else TCG]
    #[arg(long, value_enum, value_name = "ACCEL")]
    pub accel: Option<Accel>,
}

/// Build and boot options.
#[derive(Args, Debug, Default)]
pub struct VmOptions {
    /// Build options.
    #[command(flatten)]
    pub build: BuildOptions,
    /// Boot options.
    #[command(flatten)]
    pub guest: GuestOptions,
}

/// A user's program and where it runs.
#[derive(Args, Debug)]
pub struct ProgramOptions {
    /// The target
    #[arg(index = 1, value_name = "TARGET")]
    pub name: String,
    /// The program (a path, or a name in PATH) and its arguments
    #[arg(index = 2, last = true, required = true, value_name = "PROGRAM ARGS")]
    pub program: Vec<OsString>,
    /// Set an environment variable, or pass on the host's; may be repeated
    #[arg(long, value_name = "NAME[=VALUE]")]
    pub env: Vec<OsString>,
    /// Copy this file or directory into the guest, to the same path. Programs
    /// and libraries bring their libraries. May be repeated
    #[arg(long, value_name = "PATH")]
    pub carry: Vec<PathBuf>,
    /// Build and boot options.
    #[command(flatten)]
    pub vm: VmOptions,
}

/// Options of `exec` and `runner`.
#[derive(Args, Debug)]
pub struct ExecOptions {
    /// Copy files that the program writes to $KCOV_VM_SCRATCH into DIR
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// Read standard input to its end, and give it to the program
    #[arg(long)]
    pub stdin: bool,
    /// The program.
    #[command(flatten)]
    pub run: ProgramOptions,
}

/// Options of `fuzz`.
#[derive(Args, Debug)]
pub struct FuzzOptions {
    /// The directory for the corpus and the crashes [default: fuzz/TARGET]
    #[arg(long, value_name = "DIR")]
    pub dir: Option<PathBuf>,
    /// Run N guests in parallel [default: one per processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub guests: Option<u32>,
    /// End after N seconds [default: never]
    #[arg(long, value_name = "N")]
    pub seconds: Option<u64>,
    /// Replace each guest after N seconds; the next one starts from all guests' inputs
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub sync: u64,
    /// End after N guests have died
    #[arg(long, value_name = "N")]
    pub deaths: Option<u64>,
    /// The seed of the first guest
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Run at this command's priority, not only if no other program wants the processor
    #[arg(long)]
    pub foreground: bool,
    /// The fuzzer.
    #[command(flatten)]
    pub run: ProgramOptions,
}

/// Options of `trace`.
#[derive(Args, Debug)]
pub struct TraceOptions {
    /// Print a line for each program counter, with the functions inlined there
    #[arg(long, group = "style")]
    pub lines: bool,
    /// Print the recorded program counters
    #[arg(long, group = "style")]
    pub pcs: bool,
    /// Print nothing
    #[arg(long, group = "style")]
    pub quiet: bool,
    /// Write the collected data, for `kcov-trace --read`
    #[arg(long, value_name = "FILE")]
    pub raw: Option<PathBuf>,
    /// Write a tracefile for genhtml(1); the target must have source lines
    #[arg(long, value_name = "FILE")]
    pub lcov: Option<PathBuf>,
    /// Write stacks of files and functions, for tools that draw flame graphs
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,
    /// The size of each thread's buffer, in words
    #[arg(long, value_name = "N")]
    pub words: Option<u64>,
    /// The program.
    #[command(flatten)]
    pub run: ProgramOptions,
}

/// Options of reports.
#[derive(Args, Debug, Default)]
pub struct ReportOptions {
    /// The report's format
    #[arg(long, value_enum, default_value_t, value_name = "FORMAT")]
    pub format: Format,
    /// Write the report to this file, and print the text format
    #[arg(long = "report", value_name = "FILE")]
    pub file: Option<PathBuf>,
}

/// Options of `test`.
#[derive(Args, Debug, Default)]
pub struct TestOptions {
    /// The targets [default: the default targets of `list`]
    #[arg(value_name = "TARGET")]
    pub names: Vec<String>,
    /// Test all targets and print all results again at the end. A target that lacks a required option is
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
    /// Run this KTAP program instead of the suite
    #[arg(long, value_name = "FILE")]
    pub program: Option<PathBuf>,
    /// Arguments for the program
    #[arg(last = true, requires = "program", value_name = "ARGS")]
    pub arguments: Vec<OsString>,
    /// The suite's arguments instead of `run --format ktap`.
    #[arg(skip)]
    pub suite: Vec<String>,
    /// The report.
    #[command(flatten)]
    pub report: ReportOptions,
    /// Build and boot options.
    #[command(flatten)]
    pub vm: VmOptions,
}
