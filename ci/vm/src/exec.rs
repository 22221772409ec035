//! `exec` and `runner`: pass on a program's output and exit status.

use crate::carry::{self, Access, Entry, Scratch};
use crate::cli::{ExecOptions, ProgramOptions};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::guest::{Listener, Stream};
use crate::output::{self, no_verdict};
use crate::session::{Ready, STDIN, Session, Task};
use crate::system::System;
use crate::target::Target;
use kcov_vm_guest::protocol::Exit;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::{env, fs};

mod cargo;
mod find;
mod shell;
mod trace;

pub use shell::shell;
pub use trace::trace;

/// The directory in a guest that a program can write to.
const SCRATCH: &str = "/scratch";

/// The variable with directories for the loader.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// The locales, without which a program silently takes text for bytes.
const LOCALES: &str = "/usr/lib/locale";

/// Runs a program. If cargo chose it, `cargo` says whether the crate's workspace comes along.
pub fn exec(
    mut session: Session,
    options: ExecOptions,
    cargo: Option<bool>,
    verbose: bool,
) -> Result<u8> {
    let ExecOptions { scratch, stdin, run } = options;
    if cargo.is_some() {
        session.choices.settled = true;
        // Cargo names programs by absolute paths.
        if run.program[0].as_bytes().starts_with(b"-") {
            let option = Path::new(&run.program[0]).display();
            let why = format!("runner {option}: no such option; see runner --help");
            return Err(Error::usage(why));
        }
    }
    status(&session, &run.name, |target| {
        let task = task(&session, target, &run, cargo)?;
        pass_on(&session, target, task, stdin, scratch.as_deref(), verbose)
    })
}

/// Makes the task for a program. If cargo chose it, the guest also gets cargo's variables and files,
/// with the crate's workspace if `cargo` is true, and a problem with it is no usage error.
pub fn task(
    session: &Session,
    target: &Target,
    options: &ProgramOptions,
    cargo: Option<bool>,
) -> Result<Task> {
    session.given(target)?;
    let unfit = |why| match cargo {
        Some(_) => Error::unavailable(Phase::Image, why),
        None => Error::Usage(why),
    };
    let mut variables = Vec::new();
    if cargo.is_some() {
        variables = cargo::variables();
        variables.push(("KCOV_VM_TARGET".into(), target.name.clone().into()));
    }
    let system = target.kind.system();
    if system == System::Linux {
        // The guest's loader has to find what this machine's loader finds.
        variables.extend(env::var_os(LIBRARIES).map(|path| (LIBRARIES.into(), path)));
    }
    for word in &options.env {
        variables.push(variable(word).map_err(Error::Usage)?);
    }
    let words = options.program.clone();
    let found = match system {
        System::Linux => find::find(words, target.arch).map_err(unfit)?,
        // The host's `PATH` does not apply to NetBSD.
        System::NetBsd => find::Found::plain(words),
    };
    let find::Found { program, word, arguments, scripts } = found;
    let mut task = session.task(target, &program, arguments, variables).map_err(unfit)?;
    task.word = word;
    scripts.iter().try_for_each(|script| task.carried.add(script)).map_err(unfit)?;
    let locales = Path::new(LOCALES);
    let sets_locale = |name: &OsStr| name == "LANG" || name.as_bytes().starts_with(b"LC_");
    if task.environment.iter().any(|(name, _)| sets_locale(name)) && locales.is_dir() {
        task.carried.add(locales).map_err(unfit)?;
    }
    if let Some(tree) = cargo {
        cargo::equip(&mut task, Path::new(&options.program[0]), tree).map_err(unfit)?;
    }
    for path in &options.carry {
        task.carried.add(path).map_err(|why| Error::usage(format!("--carry {why}")))?;
    }
    task.carried.shell();
    let here = env::current_dir();
    let here =
        here.map_err(|error| unfit(format!("the working directory: {error}; cd elsewhere")))?;
    // In one of the guest's own file systems it need not come along.
    let _ = task.carried.way(&here);
    task.directory = Some(here);
    task.carried.put(Path::new(SCRATCH), Entry::Directory(Access::root(0o1777)));
    task.environment.push(("KCOV_VM_SCRATCH".into(), SCRATCH.into()));
    Ok(task)
}

/// Parses `--env`: a name with a value, or the name of a variable that is set here.
fn variable(word: &OsStr) -> std::result::Result<(OsString, OsString), String> {
    let shown = Path::new(word).display();
    let bytes = word.as_bytes();
    let at = bytes.iter().position(|&byte| byte == b'=');
    match at {
        Some(0) => Err(format!("--env {shown}: a variable has a name; write NAME or NAME=VALUE")),
        Some(at) => {
            let part = |bytes| OsStr::from_bytes(bytes).to_os_string();
            Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
        }
        None => match env::var_os(word) {
            Some(value) => Ok((word.into(), value)),
            None => Err(format!("--env {shown}: is not set here; use --env {shown}=VALUE")),
        },
    }
}

/// Boots the guest and passes on the program's input, output and files.
fn pass_on(
    session: &Session,
    target: &Target,
    mut task: Task,
    stdin: bool,
    scratch: Option<&Path>,
    verbose: bool,
) -> Result<Exit> {
    if stdin {
        let mut bytes = Vec::new();
        // One more than fits is enough for an error.
        let input = io::stdin().take(carry::MOST + 1).read_to_end(&mut bytes);
        input.or_unavailable(Phase::Image, "standard input")?;
        task.carried.input(Path::new(STDIN), bytes).map_err(Error::Usage)?;
    }
    task.one_output = output::is_one();
    task.send_back = scratch.is_some().then(|| SCRATCH.into());
    let scratch = scratch.map(Scratch::new).transpose();
    let scratch = scratch.map_err(|why| Error::usage(format!("--scratch {why}")))?;
    let ready = session.prepare(target)?;
    let mut through = Through { verbose, scratch };
    let exit = boot(session, &ready, task, verbose, &mut through)?;
    let kept = through.scratch.map_or(Ok(()), Scratch::finish);
    kept.map_err(|why| Error::unavailable(Phase::End, format!("--scratch {why}")))?;
    Ok(exit)
}

fn boot(
    session: &Session,
    ready: &Ready<'_>,
    task: Task,
    verbose: bool,
    listener: &mut dyn Listener,
) -> Result<Exit> {
    if verbose {
        eprintln!("{}: {}, {}", ready.target().name, ready.kernel, ready.accelerator);
    }
    let exit = session.run(ready, task, listener)?.ended()?;
    // There was no error that the logs could explain.
    let _ = fs::remove_dir_all(&ready.logs);
    Ok(exit)
}

/// Runs a program on the named target and returns the command's exit status.
fn status(session: &Session, name: &str, run: impl FnOnce(&Target) -> Result<Exit>) -> Result<u8> {
    let target = session.targets.named(name)?;
    match run(target) {
        // A status has eight bits, and a signal's number is below 65.
        Ok(Exit::Status(number)) => Ok(number as u8),
        Ok(Exit::Signal(number)) => Ok(128_u8.wrapping_add(number as u8)),
        Err(error) => no_verdict(target, error),
    }
}

/// Passes on a program's output as it arrives.
struct Through {
    verbose: bool,
    scratch: Option<Scratch>,
}

impl Listener for Through {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        output::write(stream, bytes);
    }

    fn is_closed(&self) -> bool {
        output::is_closed()
    }

    fn file(&mut self, path: &OsStr, mode: u32) {
        if let Some(scratch) = &mut self.scratch {
            scratch.file(path, mode);
        }
    }

    fn data(&mut self, bytes: &[u8]) {
        if let Some(scratch) = &mut self.scratch {
            scratch.data(bytes);
        }
    }

    fn console(&mut self, line: &str) {
        if self.verbose {
            eprintln!("[kernel] {line}");
        }
    }
}
