//! Runs the host's commands.

use rustix::process::{Signal, getpid, getppid, set_parent_process_death_signal};
use std::ffi::OsStr;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

/// Makes a command with English output that ends with this process. It does not inherit settings of
/// `cargo` or an outer `make`.
pub fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = outliving(program);
    ends_with_us(&mut command, Signal::TERM);
    command
}

/// Makes such a command that goes on if this process ends.
pub(crate) fn outliving(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env("LC_ALL", "C").stdin(Stdio::null());
    for name in ["MAKEFLAGS", "MFLAGS", "CARGO_MAKEFLAGS", "TAR_OPTIONS"] {
        command.env_remove(name);
    }
    command
}

/// Makes a command end by this signal with this process, even if we are killed. `make` passes the
/// signal on to its children.
pub(crate) fn ends_with_us(command: &mut Command, signal: Signal) {
    let us = getpid();
    let before_exec = move || {
        set_parent_process_death_signal(Some(signal))?;
        // We may have ended before that.
        if getppid() == Some(us) { Ok(()) } else { Err(io::ErrorKind::Interrupted.into()) }
    };
    // SAFETY: the closure makes two system calls. It neither allocates nor takes a lock, so it may
    // run between fork and exec.
    unsafe { command.pre_exec(before_exec) };
}

/// Runs a command and returns its standard output. The error quotes the command's own message.
pub fn read(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| not_started(&name, &error))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(failed(&name, &output))
    }
}

/// Says that a program could not be started.
pub(crate) fn not_started(name: &str, error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        format!("{name} is not installed")
    } else {
        format!("{name}: {error}")
    }
}

fn failed(name: &str, output: &Output) -> String {
    let text = String::from_utf8_lossy(&output.stderr);
    let errors = |line: &&str| line.starts_with("E:") || line.to_lowercase().contains("error");
    let lines = || text.lines().map(str::trim).filter(|line| !line.is_empty());
    match lines().find(errors).or_else(|| lines().next()) {
        Some(line) => format!("{name}: {line}"),
        None => format!("{name}: {}", output.status),
    }
}

/// Finds a program in `PATH` or the neighbouring `sbin` directories, where Debian puts some
/// programs that need no privileges.
pub fn locate(program: impl AsRef<OsStr>) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .filter(|directory| !directory.as_os_str().is_empty())
        .flat_map(|directory| [directory.clone(), directory.with_file_name("sbin")])
        .map(|directory| directory.join(program.as_ref()))
        .find(|file| file.is_file())
}
