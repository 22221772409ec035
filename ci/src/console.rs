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
            Self::Sanitizer | Self::Lockdep | Self::Hung | Self::Warning => false,
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
    let (ordinary, beginnings) = match system {
        System::Linux => (linux::ORDINARY, linux::BEGINNINGS),
        System::NetBsd => (netbsd::ORDINARY, netbsd::BEGINNINGS),
    };
    if ordinary.iter().any(|beginning| line.starts_with(beginning)) {
        return None;
    }
    beginnings
        .iter()
        .find(|(beginning, _)| line.starts_with(beginning))
        .map(|&(_, kind)| Trouble { kind, line: line.to_string() })
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
