//! The command line.

use crate::coverage::Coverage;
use crate::record::{self, Ended};
use crate::report::{self, Style};
use crate::symbols::Symbols;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

const HELP: &str = "\
Runs a command and says which kernel code its threads and children went through.

Usage: kcov-trace [OPTIONS] -- COMMAND [ARGS]
       kcov-trace [OPTIONS] --read FILE

Printed, on standard output:
      --functions      a line per function (the default)
      --lines          a line per program counter, with what was inlined there
      --pcs            the program counters as recorded
      --quiet          nothing
Written:
      --raw FILE       what was collected, for --read on any machine
      --lcov FILE      for genhtml(1); needs debug information
      --drcov FILE     for disassemblers
Names and lines:
      --vmlinux FILE   from the kernel's file, best with debug information
      --kallsyms FILE  names only [default: /proc/kallsyms]
Collecting:
      --words N        size of each thread's buffer [default: 524288]
      --limit SECONDS  kill the command after that; what was collected is kept

Exit status: the command's, or 0 with --read; 2 if the command line is wrong,
69 if kcov cannot be used, a file cannot be read or written, or the time limit
is reached.
";

/// Why nothing can be reported.
#[derive(Debug)]
pub enum Error {
    /// The command line asks for something that does not exist.
    Usage(String),
    /// Something else is in the way.
    Unavailable(String),
}

impl Error {
    /// The exit status that says so.
    pub fn status(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            Error::Unavailable(_) => 69,
        }
    }

    /// What was being done when something failed.
    pub fn of(doing: impl fmt::Display) -> impl FnOnce(io::Error) -> Error {
        move |error| Error::Unavailable(format!("{doing}: {error}"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(text) | Error::Unavailable(text) => f.write_str(text),
        }
    }
}

impl From<lexopt::Error> for Error {
    fn from(error: lexopt::Error) -> Error {
        Error::Usage(format!("{error}; see kcov-trace --help"))
    }
}

impl From<kcov::Error> for Error {
    fn from(error: kcov::Error) -> Error {
        Error::Unavailable(error.to_string())
    }
}

#[derive(Default)]
struct Options {
    style: Style,
    raw: Option<PathBuf>,
    read: Option<PathBuf>,
    lcov: Option<PathBuf>,
    drcov: Option<PathBuf>,
    vmlinux: Option<PathBuf>,
    kallsyms: Option<PathBuf>,
    words: Option<u64>,
    limit: Option<u32>,
    command: Vec<OsString>,
}

/// Does what the words say. The result is the exit status.
pub fn run(words: impl Iterator<Item = OsString>) -> Result<u8, Error> {
    let Some(options) = parse(words)? else {
        report::print(HELP)?;
        return Ok(0);
    };
    // What cannot be read is known of before the command runs.
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
        // The names of another machine's kernel would be wrong.
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
    report::print(&report::text::render(&coverage, &symbols, options.style))?;
    match ended {
        Ended::ByItself(status) => Ok(status),
        Ended::AtLimit(seconds) => Err(Error::Unavailable(format!(
            "the command did not end within {seconds} s and was killed; what it went through until \
             then is kept"
        ))),
    }
}

fn write(file: &Path, bytes: &[u8]) -> Result<(), Error> {
    fs::write(file, bytes).map_err(Error::of(file.display()))
}

/// `None` if help is wanted.
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
            Long("vmlinux") => options.vmlinux = Some(parser.value()?.into()),
            Long("kallsyms") => options.kallsyms = Some(parser.value()?.into()),
            Long("words") => options.words = Some(parser.value()?.parse()?),
            Long("limit") => options.limit = Some(parser.value()?.parse()?),
            // The command's own options are not ours.
            Value(first) => {
                options.command.push(first);
                options.command.extend(parser.raw_args()?);
            }
            _ => return Err(word.unexpected().into()),
        }
    }
    let wrong = match (&options.read, options.command.is_empty()) {
        (Some(_), false) => Some("a command, or --read FILE, not both"),
        (None, true) => Some("a command is missing"),
        _ if options.lcov.is_some() && options.vmlinux.is_none() => {
            Some("--lcov needs --vmlinux FILE")
        }
        _ if options.read.is_some() && options.words.is_some() => Some("--words is for collecting"),
        _ => None,
    };
    match wrong {
        Some(why) => Err(Error::Usage(format!("{why}; see kcov-trace --help"))),
        None => Ok(Some(options)),
    }
}
