//! The command line.

use crate::coverage::Coverage;
use crate::error::Error;
use crate::record::{self, Ended};
use crate::report::{self, Style};
use crate::symbols::Symbols;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Runs a command and lists the kernel code that its threads and children execute.

Usage: kcov-trace [OPTIONS] -- COMMAND [ARGS]
       kcov-trace [OPTIONS] --read FILE

Output on standard output:
      --functions      a line for each function (the default)
      --lines          a line for each program counter, with inlined functions
      --pcs            the recorded program counters
      --quiet          nothing
Output files:
      --raw FILE       the collected data, for --read on any machine
      --lcov FILE      a tracefile for genhtml(1); needs debug information
      --drcov FILE     coverage for disassemblers' plugins
      --flame FILE     an SVG of files and functions, as wide as their records
      --folded FILE    the same as text, for tools that draw flame graphs
Names and lines:
      --vmlinux FILE   the kernel image, best with debug information
      --kallsyms FILE  names only [default: /proc/kallsyms]
Collecting:
      --words N        size of each thread's buffer in words [default: 524288]
      --limit SECONDS  kill the command then, but keep the collected data

Exit status: the command's, or 0 with --read; 2 if the command line is wrong,
69 if kcov cannot be used, a file cannot be read or written, or the time limit
is reached.
";

#[derive(Default)]
struct Options {
    style: Style,
    raw: Option<PathBuf>,
    read: Option<PathBuf>,
    lcov: Option<PathBuf>,
    drcov: Option<PathBuf>,
    flame: Option<PathBuf>,
    folded: Option<PathBuf>,
    vmlinux: Option<PathBuf>,
    kallsyms: Option<PathBuf>,
    words: Option<u64>,
    limit: Option<u32>,
    command: Vec<OsString>,
}

/// Runs the command line and returns the exit status.
pub fn run(words: impl Iterator<Item = OsString>) -> Result<u8, Error> {
    let Some(options) = parse(words)? else {
        report::print(HELP)?;
        return Ok(0);
    };
    // Read the input files first, so that errors show before the command runs.
    let symbols = match (&options.vmlinux, &options.kallsyms) {
        (Some(file), _) => Some(Symbols::of_kernel(file)?),
        (None, Some(file)) => Some(Symbols::listed(file)?),
        (None, None) => None,
    };
    let mut ended = Ended::ByItself(0);
    let coverage = match &options.read {
        Some(file) => {
            let text = fs::read_to_string(file).map_err(Error::of(file.display()))?;
            Coverage::parse(&text)
                .map_err(|why| Error::Unavailable(format!("{}: {why}", file.display())))?
        }
        None => {
            let (coverage, end) = record::run(&options.command, options.words, options.limit)?;
            ended = end;
            coverage
        }
    };
    if let Some(file) = &options.raw {
        write(file, coverage.to_string().as_bytes())?;
    }
    let symbols = match symbols {
        Some(symbols) => symbols,
        // The names of this machine's kernel would be wrong for another's
        // trace.
        None if options.read.is_some() => Symbols::none(),
        None => Symbols::listed(Path::new("/proc/kallsyms"))?,
    };
    if let Some(file) = &options.lcov {
        let source = options.vmlinux.as_deref().expect("required by the command line");
        write(file, report::lcov::render(&coverage, &symbols, source)?.as_bytes())?;
    }
    if let Some(file) = &options.drcov {
        write(file, &report::drcov::render(&coverage, options.vmlinux.as_deref()))?;
    }
    if options.flame.is_some() || options.folded.is_some() {
        let stacks = report::folded::stacks(&coverage, &symbols);
        if let Some(file) = &options.flame {
            let title = format!("Linux {}", coverage.kernel);
            write(file, report::flame::render(&stacks, &title).as_bytes())?;
        }
        if let Some(file) = &options.folded {
            write(file, report::folded::render(&stacks).as_bytes())?;
        }
    }
    report::print(&report::text::render(&coverage, &symbols, options.style))?;
    match ended {
        Ended::ByItself(status) => Ok(status),
        Ended::AtLimit(seconds) => Err(Error::Unavailable(format!(
            "the command did not end within {seconds} s and was killed; its coverage until then is \
             kept"
        ))),
    }
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(file, bytes).map_err(Error::of(file.display()))
}

/// Returns `None` for help.
fn parse(words: impl Iterator<Item = OsString>) -> Result<Option<Options>, Error> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_args(words);
    let mut options = Options::default();
    while let Some(word) = parser.next()? {
        match word {
            Short('h') | Long("help") => return Ok(None),
            Long("functions") => options.style = Style::Functions,
            Long("lines") => options.style = Style::Lines,
            Long("pcs") => options.style = Style::Pcs,
            Long("quiet") => options.style = Style::Quiet,
            Long("raw") => options.raw = Some(parser.value()?.into()),
            Long("read") => options.read = Some(parser.value()?.into()),
            Long("lcov") => options.lcov = Some(parser.value()?.into()),
            Long("drcov") => options.drcov = Some(parser.value()?.into()),
            Long("flame") => options.flame = Some(parser.value()?.into()),
            Long("folded") => options.folded = Some(parser.value()?.into()),
            Long("vmlinux") => options.vmlinux = Some(parser.value()?.into()),
            Long("kallsyms") => options.kallsyms = Some(parser.value()?.into()),
            Long("words") => options.words = Some(parser.value()?.parse()?),
            Long("limit") => options.limit = Some(parser.value()?.parse()?),
            // Options after the command's name belong to the command.
            Value(first) => {
                options.command.push(first);
                options.command.extend(parser.raw_args()?);
            }
            _ => return Err(word.unexpected().into()),
        }
    }
    let wrong = match (&options.read, options.command.is_empty()) {
        (Some(_), false) => Some("give a command or --read FILE, not both"),
        (None, true) => Some("name a command"),
        _ if options.lcov.is_some() && options.vmlinux.is_none() => {
            Some("--lcov needs --vmlinux FILE")
        }
        _ if options.read.is_some() && options.words.is_some() => {
            Some("--words works only with a command")
        }
        _ => None,
    };
    match wrong {
        Some(why) => Err(Error::Usage(format!("{why}; see kcov-trace --help"))),
        None => Ok(Some(options)),
    }
}
