//! Commands that run a program of the user's.

use super::vm::VmOptions;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

/// Options of `exec`.
#[derive(Args, Debug)]
pub struct ExecOptions {
    /// The target
    #[arg(value_name = "TARGET")]
    pub name: String,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM ARGS")]
    pub program: Vec<OsString>,
    /// Where it runs.
    #[command(flatten)]
    pub place: PlaceOptions,
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
    /// Where it runs.
    #[command(flatten)]
    pub place: PlaceOptions,
}

/// Where a program runs that the user chose.
#[derive(Args, Debug)]
pub struct PlaceOptions {
    /// Bring back what the program leaves in the directory KCOV_VM_SCRATCH
    #[arg(long, value_name = "DIR")]
    pub scratch: Option<PathBuf>,
    /// What it finds there.
    #[command(flatten)]
    pub carry: CarryOptions,
    /// How to build and boot.
    #[command(flatten)]
    pub vm: VmOptions,
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
    /// How to build and boot.
    #[command(flatten)]
    pub vm: VmOptions,
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
