//! Options of the commands that run a user's program.

use super::vm::VmOptions;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

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
