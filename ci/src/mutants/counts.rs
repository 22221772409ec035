//! Counts the mutants by their six outcomes.

use super::known::Known;
use super::record::{Entry, Outcome};

/// The number of mutants for each outcome. They add up to all that were tried.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// A check was red.
    pub killed: usize,
    /// No check was red, but the kernel did not survive the suite.
    pub ended: usize,
    /// All checks were green.
    pub undetected: usize,
    /// All checks were green, and a proof says why they have to be.
    pub equivalent: usize,
    /// They compile to identical code.
    pub same: usize,
    /// They do not compile.
    pub invalid: usize,
}

/// The names of the numbers and their meanings.
pub const MEANINGS: [(&str, &str); 6] = [
    ("killed by a check", "a check was red, or the kernel lacked a declared feature"),
    ("ended by the kernel", "no check was red; the kernel panicked, warned or hung, twice"),
    ("undetected", "all checks are green"),
    ("proved equivalent", "all checks are green; the proof is below"),
    ("same code", "compiles to the same code"),
    ("invalid", "does not build"),
];

impl Counts {
    /// Counts the entries.
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

    /// The numbers, in the order of `MEANINGS`.
    pub fn numbers(self) -> [usize; 6] {
        let Self { killed, ended, undetected, equivalent, same, invalid } = self;
        [killed, ended, undetected, equivalent, same, invalid]
    }

    /// Describes the share of mutants that the checks notice.
    pub fn score(self) -> String {
        let other = self.killed + self.ended + self.undetected;
        let percent = self.killed as f64 * 100.0 / other.max(1) as f64;
        format!(
            "The suite notices {} of the {other} mutants that compile to different code and are not \
             proved equivalent: {percent:.1} %.",
            self.killed
        )
    }
}
