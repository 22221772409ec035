//! Recognises the kernel's complaints on its console: one classifier for all commands.
//!
//! A line such as `BUG: text` proves nothing, because programs and drivers write to the kernel's log
//! as well. It is a complaint if the kernel goes on with a report (registers, a stack), or dies.

mod linux;
mod netbsd;
mod stack;

pub use stack::{place, slug, words};

use crate::system::System;
use std::collections::BTreeMap;
use std::fmt;

/// A complaint of the kernel, with its whole report.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Complaint {
    /// The kind of complaint.
    pub kind: TroubleKind,
    /// The line that announces it, without its time stamp.
    pub line: String,
    /// The lines of the report, from what the kernel printed before that line to its end.
    pub text: Vec<String>,
    /// The functions that the compiler put into another at a place, `f+0x1/0x2`, the innermost
    /// first. Whoever has the kernel's debug information adds them.
    pub inlined: BTreeMap<String, Vec<String>>,
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

impl Complaint {
    /// Whether the kernel complains about a lack of memory.
    pub fn is_of_memory(&self) -> bool {
        // A kernel panics if it has no process to kill, or may not kill one.
        let lacks = ["ut of memory", "deadlocked on memory"];
        let has_died = self.kind.is_fatal() && lacks.iter().any(|words| self.line.contains(words));
        self.kind == TroubleKind::Memory || has_died
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: `{}`", self.kind, self.line)
    }
}

/// The form of a line, whose parts `*` separates, and the kind of complaint.
type Row = (&'static str, TroubleKind);

/// The number of lines within which a report goes on.
const WINDOW: usize = 12;
/// The number of lines to keep from before a complaint.
const KEPT: usize = 200;

/// Reads a console line by line.
#[derive(Debug)]
pub struct Reader {
    system: System,
    complaints: Vec<Complaint>,
    /// Whether the last complaint's report goes on.
    is_open: bool,
    /// The lines that belong to no complaint yet.
    lines: Vec<String>,
    /// A line that has the form of a complaint, by its place in `lines`, without proof yet.
    pending: Option<(usize, TroubleKind)>,
}

impl Reader {
    pub fn new(system: System) -> Self {
        let (complaints, lines) = (Vec::new(), Vec::new());
        Self { system, complaints, is_open: false, lines, pending: None }
    }

    /// Takes a line. Returns the kind if this line makes a complaint certain, or worse.
    pub fn line(&mut self, line: &str) -> Option<TroubleKind> {
        let line = line.trim_end();
        self.lines.push(line.into());
        let at = self.lines.len() - 1;
        let line = message(line);
        let found = row(line, self.system).map(|(_, kind)| *kind);
        if self.system == System::NetBsd {
            self.pending = found.map(|kind| (at, kind));
            self.forget();
            return self.confirm();
        }
        if let (Some(last), Some(kind)) = (self.complaints.last(), found) {
            if linux::is_consequence(line) || self.is_open && linux::goes_on(last.kind, line) {
                self.flush(self.lines.len());
                self.is_open = true;
                return Some(kind);
            }
        }
        let has_body = linux::is_body(line);
        let is_same = self.pending.is_some_and(|(_, kind)| {
            has_body
                || found.is_some() && (linux::is_consequence(line) || linux::goes_on(kind, line))
        });
        if is_same {
            return self.confirm();
        }
        if let Some(kind) = found {
            self.pending = Some((at, kind));
            // User-Mode Linux prints the registers first.
            let is_announced =
                kind == TroubleKind::Panic && linux::first(kind, &self.lines[..at]) < at;
            if linux::is_sure(line) || is_announced {
                return self.confirm();
            }
        } else if linux::ends(line) && self.is_open && self.pending.is_none() {
            self.flush(self.lines.len());
            self.is_open = false;
        }
        match self.pending {
            // Nothing follows a panic on some machines.
            Some((first, kind)) if kind != TroubleKind::Panic && at - first > WINDOW => {
                self.pending = None;
            }
            _ => self.forget(),
        }
        None
    }

    /// Drops lines that no report will need.
    fn forget(&mut self) {
        if self.pending.is_none() && !self.is_open && self.lines.len() > 2 * KEPT {
            self.lines.drain(..KEPT);
        }
    }

    /// The number of complaints.
    pub fn count(&self) -> usize {
        self.complaints.len()
    }

    /// The kind of a line that has the form of a complaint, as long as there is no proof.
    pub fn pending(&self) -> Option<TroubleKind> {
        self.pending.map(|(_, kind)| kind)
    }

    /// The guest lives on, so a line about its death was text.
    pub fn lives(&mut self) {
        self.pending = self.pending.filter(|(_, kind)| *kind != TroubleKind::Panic);
    }

    /// Returns the complaints. A guest that died proves what its last lines say.
    pub fn finish(mut self, died: bool) -> Vec<Complaint> {
        if died {
            self.confirm();
        }
        if self.is_open {
            self.flush(self.lines.len());
        }
        self.complaints
    }

    /// Makes a complaint of the pending line.
    fn confirm(&mut self) -> Option<TroubleKind> {
        let (at, kind) = self.pending.take()?;
        let first = match self.system {
            System::Linux => linux::first(kind, &self.lines[..at]),
            System::NetBsd => at,
        };
        let line = message(&self.lines[at]).to_owned();
        if self.is_open {
            self.flush(first);
        } else {
            self.lines.drain(..first);
        }
        self.complaints.push(Complaint { kind, line, text: Vec::new(), inlined: BTreeMap::new() });
        self.is_open = true;
        self.flush(self.lines.len());
        Some(kind)
    }

    /// Adds lines to the last complaint.
    fn flush(&mut self, count: usize) {
        let lines = self.lines.drain(..count);
        if let Some(last) = self.complaints.last_mut() {
            last.text.extend(lines);
        }
        self.pending = self.pending.map(|(at, kind)| (at - count, kind));
    }
}

/// The complaints on the console of a guest that died.
pub fn complaints(console: &[String], system: System) -> Vec<Complaint> {
    let mut reader = Reader::new(system);
    for line in console {
        reader.line(line);
    }
    reader.finish(true)
}

/// Returns the row that has the form of the message.
fn row(line: &str, system: System) -> Option<&'static Row> {
    let (ordinary, complaints) = match system {
        System::Linux => (linux::ORDINARY, linux::COMPLAINTS),
        System::NetBsd => (&[][..], netbsd::COMPLAINTS),
    };
    if ordinary.iter().any(|form| has_form(line, form)) || of_a_process(line) {
        return None;
    }
    complaints.iter().find(|(form, _)| has_form(line, form))
}

/// Whether a line begins with these parts, which `*` separates.
fn has_form(line: &str, form: &str) -> bool {
    let mut parts = form.split('*');
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
mod tests;
