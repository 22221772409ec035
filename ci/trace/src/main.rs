//! `kcov-trace`: lists the kernel code that a command executes. See `README.md`.
//!
//! `record` collects, `coverage` holds and stores the data, `kernel` identifies kernels, `symbols`
//! finds names and lines, `modules` lists loaded modules, and `report` prints and writes.

#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
compile_error!("kcov-trace sets the traced threads' registers and supports only Linux on x86_64");

mod coverage;
mod error;
mod kernel;
mod modules;
mod record;
mod report;
mod symbols;

use clap::{CommandFactory as _, Parser};
use coverage::Coverage;
use error::Error;
use kernel::Kernel;
use record::Ended;
use report::Style;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use symbols::Symbols;

/// The status when kcov cannot be used, a file does not serve, or the time limit is reached.
const UNAVAILABLE: u8 = 69;

fn main() -> ExitCode {
    let status = run().unwrap_or_else(|error| {
        eprintln!("kcov-trace: {error}");
        UNAVAILABLE
    });
    ExitCode::from(status)
}

const STATUS: &str = "\
Exit status: the command's, or 0 with --read; 2 if the command line is wrong,
69 if kcov cannot be used, a file cannot be read or written or is of another
kernel, or the time limit is reached.";

/// Runs a command and lists the kernel code that its threads and children execute.
#[derive(Debug, Parser)]
#[command(name = "kcov-trace", version, after_help = STATUS)]
struct Options {
    #[command(flatten)]
    style: Style,
    /// Read collected data instead of running a command. Repeat it to add up several runs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["command", "words", "limit"])]
    read: Vec<PathBuf>,
    /// Write the collected data, for --read on any machine
    #[arg(long, value_name = "FILE")]
    raw: Option<PathBuf>,
    /// Write a tracefile for genhtml(1); needs debug information
    #[arg(long, value_name = "FILE", requires = "vmlinux")]
    lcov: Option<PathBuf>,
    /// Write stacks of files and functions, for tools that draw flame graphs
    #[arg(long, value_name = "FILE")]
    folded: Option<PathBuf>,
    /// The recorded kernel's image, best with debug information. Without it, names come from the
    /// running kernel's list and --read has none
    #[arg(long, value_name = "FILE")]
    vmlinux: Option<PathBuf>,
    /// The size of each thread's buffer in words of 8 bytes
    #[arg(long, value_name = "N", default_value_t = 512 << 10)]
    words: u64,
    /// Kill the command then, but keep the collected data
    #[arg(long, value_name = "SECONDS")]
    limit: Option<u32>,
    /// Print the manual page, in man(7)
    #[arg(long, hide = true)]
    man: bool,
    /// The command and its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["read", "man"])]
    command: Vec<OsString>,
}

/// Runs the command line and returns the exit status. A wrong one ends the program with status 2.
fn run() -> Result<u8, Error> {
    let options = Options::parse();
    if options.man {
        let page = clap_mangen::Man::new(Options::command()).date("2026-11-28");
        page.render(&mut io::stdout()).map_err(Error::of("print the manual page"))?;
        return Ok(0);
    }
    let mut ended = Ended::ByItself(0);
    let mut coverage = match options.read.split_first() {
        Some((first, others)) => others.iter().try_fold(read(first)?, |sum, other| {
            sum.merged(read(other)?).map_err(|why| Error::about(other.display(), why))
        })?,
        None => Coverage { kernel: Kernel::running()?, ..Coverage::default() },
    };
    // Read the image first, so that errors show before the command runs.
    let image = options.vmlinux.as_deref();
    let image = image.map(|file| Symbols::of_image(file, &coverage.kernel)).transpose()?;
    if options.read.is_empty() {
        ended = record::run(&options.command, options.words, options.limit, &mut coverage)?;
    }
    if let Some(file) = &options.raw {
        write(file, coverage.to_string().as_bytes())?;
    }
    let symbols = match image {
        Some(image) => image,
        None if options.read.is_empty() => Symbols::listed()?,
        // The names of this machine's kernel would be wrong for another's trace.
        None => Symbols::Listed(Vec::new()),
    };
    if let Some(file) = &options.lcov {
        write(file, report::lcov::render(&coverage, &symbols)?.as_bytes())?;
    }
    if let Some(file) = &options.folded {
        write(file, report::folded::render(&coverage, &symbols).as_bytes())?;
    }
    // A report of millions of lines is not kept in memory.
    let mut out = BufWriter::new(io::stdout().lock());
    let written = report::write(&coverage, &symbols, &options.style, &mut out);
    match written.and_then(|()| out.flush()) {
        // A closed reader is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            return Err(Error::of("cannot write to standard output")(error));
        }
        _ => {}
    }
    match ended {
        Ended::ByItself(status) => Ok(status),
        Ended::AtLimit(seconds) => Err(Error::from(format!(
            "the command did not end within {seconds} s and was killed; its coverage until then is \
             kept"
        ))),
    }
}

fn read(file: &Path) -> Result<Coverage, Error> {
    let text = fs::read_to_string(file).map_err(Error::of(file.display()))?;
    Coverage::parse(&text).map_err(|why| Error::about(file.display(), why))
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(file, bytes).map_err(Error::of(file.display()))
}
