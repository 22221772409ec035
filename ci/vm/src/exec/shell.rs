//! `shell`: a program on this terminal.

use super::{boot, status, task};
use crate::cli::ProgramOptions;
use crate::error::{Error, Result};
use crate::guest::{Listener, Stream};
use crate::output;
use crate::run::locate;
use crate::session::Session;
use crate::system::System;
use rustix::termios::{OptionalActions, Termios, isatty, tcgetattr, tcsetattr};
use std::io::stdin;
use std::time::Duration;

/// Programs that come with the shell, if this machine has them.
const PROGRAMS: &[&str] = &[
    "cat", "chmod", "cp", "dmesg", "echo", "env", "free", "grep", "head", "hexdump", "id", "kill",
    "less", "ln", "ls", "lsmod", "mkdir", "modprobe", "mount", "mv", "ps", "rm", "sleep", "strace",
    "stty", "tail", "umount", "uname",
];

/// A person works slowly.
const LIMIT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Boots the guest and connects the program with this terminal.
pub fn shell(session: &Session, mut options: ProgramOptions, verbose: bool) -> Result<u8> {
    if options.program.is_empty() {
        options.program.push("sh".into());
        options.carry.extend(PROGRAMS.iter().filter_map(locate));
    }
    status(session, &options.name, |target| {
        if target.kind.system() != System::Linux {
            let why = "`shell` is for Linux targets; run one program with `exec`";
            return Err(Error::usage(format!("{}: {why}", target.name)));
        }
        let mut task = task(session, target, &options, None)?;
        task.terminal = true;
        task.environment.push(("TERM".into(), std::env::var_os("TERM").unwrap_or("linux".into())));
        let mut ready = session.prepare(target)?;
        if session.choices.limit.is_none() {
            ready.limit(LIMIT);
        }
        let _raw = Raw::new();
        boot(session, &ready, task, verbose, &mut Terminal { booted: verbose })
    })
}

/// The terminal in raw mode, until it is dropped. The guest's terminal does the rest.
struct Raw(Option<Termios>);

impl Raw {
    fn new() -> Self {
        let before = isatty(stdin()).then(|| tcgetattr(stdin()).ok()).flatten();
        if let Some(mut raw) = before.clone() {
            raw.make_raw();
            let _ = tcsetattr(stdin(), OptionalActions::Now, &raw);
        }
        Self(before)
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = tcsetattr(stdin(), OptionalActions::Now, before);
        }
    }
}

/// Prints the console, once the kernel has booted.
struct Terminal {
    booted: bool,
}

impl Listener for Terminal {
    fn booted(&mut self, _: &str) {
        self.booted = true;
    }

    fn terminal(&mut self, bytes: &[u8]) {
        if self.booted {
            output::write(Stream::Out, bytes);
        }
    }
}
