//! Options of `test`.

use super::vm::VmOptions;
use crate::report::Format;
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

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
