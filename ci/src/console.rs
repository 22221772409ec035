//! What the kernel says on its console when something is wrong.

mod linux;
mod netbsd;

use crate::system::System;
use std::fmt;

/// A complaint of the kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trouble {
    /// What sort of complaint it is.
    pub kind: TroubleKind,
    /// The line, without its time stamp.
    pub line: String,
}

/// Sorts of complaints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TroubleKind {
    /// The kernel gave up.
    Panic,
    /// A fault in the kernel, or its `BUG()`.
    Oops,
    /// A sanitizer's report: KASAN, KCSAN, KMSAN, KFENCE, UBSAN, kmemleak.
    Sanitizer,
    /// The lock validator's report.
    Lockdep,
    /// A task or processor that does not get on.
    Hung,
    /// It killed a process for want of memory.
    Memory,
    /// `WARN()`.
    Warning,
    /// It waits in its debugger for somebody to type.
    Debugger,
    /// There is no root file system that it could mount.
    NoRoot,
    /// There is no program that it could start as init.
    NoInit,
    /// Init, which had nowhere else to say it.
    Init,
}

impl TroubleKind {
    /// Whether the guest cannot be expected to go on.
    pub fn is_fatal(self) -> bool {
        match self {
            Self::Panic
            | Self::Oops
            | Self::Debugger
            | Self::NoRoot
            | Self::NoInit
            | Self::Init => true,
            Self::Sanitizer | Self::Lockdep | Self::Hung | Self::Memory | Self::Warning => false,
        }
    }
}

impl fmt::Display for TroubleKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Panic => "the kernel panicked",
            Self::Oops => "the kernel faulted",
            Self::Sanitizer => "a sanitizer of the kernel complained",
            Self::Lockdep => "the kernel's lock validator complained",
            Self::Hung => "the kernel reports something hung",
            Self::Memory => "the kernel ran out of memory",
            Self::Warning => "the kernel warned",
            Self::Debugger => "the kernel stopped in its debugger",
            Self::NoRoot => "the kernel found no root file system",
            Self::NoInit => "the kernel could not start init",
            Self::Init => "init could not do its duty",
        })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.kind, self.line)
    }
}

/// Reads a line of the kernel log as a complaint, if it is one.
///
/// Only beginnings count: `traps: prog[9] general protection fault ip:…` is
/// about a program, and anything may be quoted further on in a line.
pub fn classify(line: &str, system: System) -> Option<Trouble> {
    let line = message(line);
    let (_, kind) = row(line, system)?;
    Some(Trouble { kind: *kind, line: line.to_string() })
}

/// A beginning of lines, in which a star stands for any text, and what such a line is.
type Row = (&'static str, TroubleKind);

/// The row that a message is a complaint by.
fn row(line: &str, system: System) -> Option<&'static Row> {
    let (ordinary, complaints) = match system {
        System::Linux => (linux::ORDINARY, linux::COMPLAINTS),
        System::NetBsd => (netbsd::ORDINARY, netbsd::COMPLAINTS),
    };
    if ordinary.iter().any(|beginning| line.starts_with(beginning)) || of_a_process(line) {
        return None;
    }
    complaints.iter().find(|(beginning, _)| begins(line, beginning))
}

fn begins(line: &str, beginning: &str) -> bool {
    let mut parts = beginning.split('*');
    let first = parts.next().and_then(|first| line.strip_prefix(first));
    parts
        .try_fold(first, |rest, part| Some(rest?.split_once(part).map(|(_, rest)| rest)))
        .flatten()
        .is_some()
}

/// Whether the line begins with a process, `name[17]: `, which may call itself whatever it likes.
fn of_a_process(line: &str) -> bool {
    const LONGEST: usize = 15;
    let process = line.split_once("]: ").and_then(|(process, _)| process.rsplit_once('['));
    process.is_some_and(|(name, number)| {
        name.len() <= LONGEST && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Strips what `printk` can be told to put before a message: `<4>`,
/// `[   12.345678] `, `[   T42] `.
fn message(line: &str) -> &str {
    let mut rest = line.trim();
    if let Some((level, tail)) = rest.strip_prefix('<').and_then(|rest| rest.split_once('>')) {
        if level.bytes().all(|b| b.is_ascii_digit()) {
            rest = tail;
        }
    }
    while let Some((stamp, tail)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let stamp = stamp.trim_start().trim_start_matches(['T', 'C']);
        if stamp.is_empty() || !stamp.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
            break;
        }
        rest = tail.trim_start();
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::{Row, TroubleKind, classify, message, row};
    use crate::system::System;

    /// Each line is the complaint that stands beside it, and each row of the table has a line that it
    /// alone accounts for.
    #[track_caller]
    pub(super) fn assert_complaints(system: System, table: &[Row], lines: &[(&str, TroubleKind)]) {
        for &(line, kind) in lines {
            let found = classify(line, system).map(|trouble| trouble.kind);
            assert_eq!(found, Some(kind), "{line}");
        }
        for (beginning, _) in table {
            let is_it = |line: &str| row(message(line), system).is_some_and(|r| r.0 == *beginning);
            assert!(lines.iter().any(|(line, _)| is_it(line)), "no line for `{beginning}`");
        }
    }
}
