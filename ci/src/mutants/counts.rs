//! The six numbers.

use super::page::Known;
use super::record::{Entry, Outcome};

/// How many mutants went which way. They add up to all that were tried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// A check was red.
    pub killed: usize,
    /// No check was, and the kernel did not survive the suite.
    pub ended: usize,
    /// All was green.
    pub undetected: usize,
    /// All was green, and it is proved that it has to be.
    pub equivalent: usize,
    /// The compiler makes the same code of them.
    pub same: usize,
    /// They do not build.
    pub invalid: usize,
}

/// The names of the numbers, and what they mean.
pub const MEANINGS: [(&str, &str); 6] = [
    ("killed by a check", "a check was red, or the proof of what the target declares"),
    ("ended by the kernel", "no check was red; it panicked, warned or hung, and once more so"),
    ("undetected", "all is green"),
    ("proved equivalent", "all is green, and the proof stands below"),
    ("same code", "the compiler makes the same object of it"),
    ("invalid", "it does not build"),
];

impl Counts {
    /// Counts entries.
    pub fn of<'a>(entries: impl Iterator<Item = &'a Entry>, known: &Known) -> Self {
        let mut counts = Self::default();
        for entry in entries {
            *match entry.outcome {
                Outcome::Killed { .. } => &mut counts.killed,
                Outcome::Ended { .. } => &mut counts.ended,
                Outcome::Undetected if known.subject.is_equivalent(&entry.id) => {
                    &mut counts.equivalent
                }
                Outcome::Undetected => &mut counts.undetected,
                Outcome::SameCode => &mut counts.same,
                Outcome::Invalid { .. } => &mut counts.invalid,
            } += 1;
        }
        counts
    }

    /// In the order of their meanings.
    pub fn numbers(self) -> [usize; 6] {
        let Self { killed, ended, undetected, equivalent, same, invalid } = self;
        [killed, ended, undetected, equivalent, same, invalid]
    }

    /// What the checks notice, in words.
    pub fn score(self) -> String {
        let other = self.killed + self.ended + self.undetected;
        let percent = self.killed as f64 * 100.0 / other.max(1) as f64;
        format!(
            "A check notices {} of the {other} that are other code and not proved equivalent: \
             {percent:.1} %.",
            self.killed
        )
    }
}
