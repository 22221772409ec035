//! `exec` and `runner`: pass on a program's output and exit status.

use crate::carry::{self, Entry, Scratch};
use crate::cli::{CarryOptions, ExecOptions, PlaceOptions, RunnerOptions};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::guest::{Listener, Stream};
use crate::layout::Access;
use crate::output::{self, complain, no_verdict};
use crate::session::{Ready, STDIN, Session, Task};
use crate::system::System;
use crate::target::Target;
use kcov_vm_guest::protocol::Exit;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

mod cargo;
mod find;
mod shell;
mod trace;

pub use shell::shell;
pub use trace::{GRACE as TRACE_GRACE, trace};

/// The directory in a guest that a program can write to.
const SCRATCH: &str = "/scratch";

/// The variable with directories for the loader.
const LIBRARIES: &str = "LD_LIBRARY_PATH";

/// Runs a program that the user chose.
pub fn exec(session: &Session, options: ExecOptions, verbose: bool) -> Result<u8> {
    let ExecOptions { name, program, place } = options;
    let target = session.targets.named(&name)?;
    let task = || task(session, target, program, &place.carry);
    status(target, task().and_then(|task| run(session, target, task, place, verbose)))
}

/// Runs a program that cargo chose, so a problem with it is not a usage error.
pub fn runner(session: &Session, options: RunnerOptions, verbose: bool) -> Result<u8> {
    let RunnerOptions { name, program, no_tree, place } = options;
    let target = session.targets.named(&name)?;
    // Cargo names programs by absolute paths.
    if program[0].as_bytes().starts_with(b"-") {
        let option = Path::new(&program[0]).display();
        return Err(Error::usage(format!("runner {option}: no such option; see runner --help")));
    }
    let file = PathBuf::from(&program[0]);
    let task = || {
        session.given(target)?;
        let mut variables = cargo::variables();
        variables.push(("KCOV_VM_TARGET".into(), target.name.clone().into()));
        let unfit = |why| Error::unavailable(Phase::Image, why);
        let mut task = start(session, target, program, variables, &place.carry)?.map_err(unfit)?;
        cargo::equip(&mut task, &file, !no_tree).map_err(unfit)?;
        equip(task, &place.carry).map_err(Error::Usage)
    };
    status(target, task().and_then(|task| run(session, target, task, place, verbose)))
}

/// Makes the task for a program that the user chose, and its arguments.
pub fn task(
    session: &Session,
    target: &Target,
    program: Vec<OsString>,
    carry: &CarryOptions,
) -> Result<Task> {
    session.given(target)?;
    let task = start(session, target, program, Vec::new(), carry)?;
    task.and_then(|task| equip(task, carry)).map_err(Error::Usage)
}

/// Finds the program and its libraries. The inner error says why no guest can run it.
fn start(
    session: &Session,
    target: &Target,
    mut program: Vec<OsString>,
    mut variables: Vec<(OsString, OsString)>,
    carry: &CarryOptions,
) -> Result<std::result::Result<Task, String>> {
    if target.kind.system() == System::Linux {
        // The guest's loader has to find what this machine's loader finds.
        variables.extend(env::var_os(LIBRARIES).map(|path| (LIBRARIES.into(), path)));
    }
    for word in &carry.env {
        variables.push(variable(word).map_err(Error::Usage)?);
    }
    Ok(match target.kind.system() {
        System::Linux => find::find(program, target.arch).and_then(|found| {
            let find::Found { program, word, arguments, script } = found;
            let mut task = session.task_with(target, &program, arguments, variables)?;
            task.word = Some(word);
            script.map_or(Ok(()), |script| task.carried.add(&script))?;
            Ok(task)
        }),
        // The host's `PATH` does not apply to NetBSD.
        System::NetBsd => {
            let arguments = program.split_off(1);
            session.task_with(target, Path::new(&program[0]), arguments, variables)
        }
    })
}

/// Adds the files that the options name, and those of every user's program.
fn equip(mut task: Task, options: &CarryOptions) -> std::result::Result<Task, String> {
    for path in &options.carry {
        task.carried.add(path).map_err(|why| format!("--carry {why}"))?;
    }
    task.carried.shell();
    // A working directory in one of the guest's own file systems may not exist there.
    let here = env::current_dir().ok();
    task.directory = here.filter(|here| task.carried.way(here).is_ok());
    task.carried.put(Path::new(SCRATCH), Entry::Directory(Access::root(0o1777)));
    task.environment.push(("KCOV_VM_SCRATCH".into(), SCRATCH.into()));
    if let Some(losses) = task.carried.losses() {
        eprintln!("kcov-vm: {losses}");
    }
    Ok(task)
}

/// Runs the task as the options say.
fn run(
    session: &Session,
    target: &Target,
    mut task: Task,
    place: PlaceOptions,
    verbose: bool,
) -> Result<Exit> {
    if place.stdin {
        let mut bytes = Vec::new();
        // One more than fits is enough for an error.
        let input = io::stdin().take(carry::MOST + 1).read_to_end(&mut bytes);
        input.or_unavailable(Phase::Image, "standard input")?;
        task.carried.input(Path::new(STDIN), bytes).map_err(Error::Usage)?;
        task.has_input = true;
    }
    finish(session, target, task, place.scratch.as_deref(), verbose)
}

/// Parses `--env`: a name with a value, or the name of a variable that is set
/// here.
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

/// Boots the guest and passes on the program's output and files.
fn finish(
    session: &Session,
    target: &Target,
    mut task: Task,
    scratch: Option<&Path>,
    verbose: bool,
) -> Result<Exit> {
    task.one_output = output::is_one();
    task.send_back = scratch.is_some().then(|| SCRATCH.into());
    let unkept = |why| Error::unavailable(Phase::End, format!("--scratch {why}"));
    let scratch = scratch.map(Scratch::new).transpose();
    let scratch = scratch.map_err(|why| Error::usage(format!("--scratch {why}")))?;
    let ready = session.prepare(target)?;
    let mut through = Through { verbose, scratch };
    let exit = boot(session, &ready, target, task, verbose, &mut through)?;
    through.scratch.map_or(Ok(()), Scratch::finish).map_err(unkept)?;
    Ok(exit)
}

fn boot(
    session: &Session,
    ready: &Ready<'_>,
    target: &Target,
    task: Task,
    verbose: bool,
    listener: &mut dyn Listener,
) -> Result<Exit> {
    if verbose {
        eprintln!("{}: {}, {}", target.name, ready.kernel, ready.accelerator);
    }
    let exit = session.run(ready, task, listener)?.ended()?;
    // There was no error that the logs could explain.
    let _ = fs::remove_dir_all(&ready.logs);
    Ok(exit)
}

fn status(target: &Target, result: Result<Exit>) -> Result<u8> {
    match result {
        // A status has eight bits, and a signal's number is below 65.
        Ok(Exit::Status(number)) => Ok(number as u8),
        Ok(Exit::Signal(number)) => {
            if let Some(cause) = target.kind.system().cause(number) {
                complain(target, &cause);
            }
            Ok(128_u8.wrapping_add(number as u8))
        }
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
