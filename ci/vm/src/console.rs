//! Recognises the kernel's complaints on its console.

mod linux;
mod netbsd;

use crate::system::System;
use std::fmt;

/// A complaint of the kernel.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Trouble {
    /// The kind of complaint.
    pub kind: TroubleKind,
    /// The line, without its time stamp.
    pub line: String,
}

/// Kinds of complaints.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TroubleKind {
    /// The kernel panicked.
    Panic,
    /// A fault in the kernel, or its `BUG()`.
    Oops,
    /// A sanitizer's report: KASAN, KCSAN, KMSAN, KFENCE, UBSAN, kmemleak.
    Sanitizer,
    /// The lock validator's report.
    Lockdep,
    /// A task or processor does not make progress.
    Hung,
    /// The kernel killed a process for lack of memory.
    Memory,
    /// `WARN()`.
    Warning,
    /// The kernel waits in its debugger for input.
    Debugger,
    /// The kernel cannot mount a root file system.
    NoRoot,
    /// The kernel cannot start a program as init.
    NoInit,
    /// A message of init, which had no other channel.
    Init,
}

impl TroubleKind {
    /// Whether the guest cannot be expected to continue.
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
            Self::Hung => "the kernel reports a hang",
            Self::Memory => "the kernel ran out of memory",
            Self::Warning => "the kernel warned",
            Self::Debugger => "the kernel stopped in its debugger",
            Self::NoRoot => "the kernel found no root file system",
            Self::NoInit => "the kernel could not start init",
            Self::Init => "init failed",
        })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.kind, self.line)
    }
}

/// Parses a line of the kernel log as a complaint.
///
/// Only the beginning of the line counts: `traps: prog[9] general protection fault ip:…` is about a
/// program, and the rest of a line may quote anything.
pub fn classify(line: &str, system: System) -> Option<Trouble> {
    let line = message(line);
    let (_, kind) = row(line, system)?;
    Some(Trouble { kind: *kind, line: line.to_string() })
}

/// The beginning of a line, where `*` matches any text, and the kind of complaint.
type Row = (&'static str, TroubleKind);

/// Returns the row that classifies the message as a complaint.
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

/// Whether the line begins with a process such as `name[17]: `. A process chooses its own name.
fn of_a_process(line: &str) -> bool {
    const LONGEST: usize = 15;
    let process = line.split_once("]: ").and_then(|(process, _)| process.rsplit_once('['));
    process.is_some_and(|(name, number)| {
        name.len() <= LONGEST && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit())
    })
}

/// Strips the prefixes that `printk` may add: `<4>`, `[   12.345678] `, `[   T42] `.
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

    /// Asserts the kind of each line, and that each row of the table is needed for one of the
    /// lines.
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
