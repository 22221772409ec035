//! The record of a campaign's outcomes.

use kcov_vm::error::{Error, Phase, Result, one_line};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The result of lockstep on an altered kernel.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lockstep {
    /// Kernel and model agreed.
    Agreed,
    /// They diverged.
    Parted,
    /// The kernel panicked, complained or hung, twice.
    Ended(String),
}

/// The outcome of one alteration.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Checks went red.
    Killed {
        /// Their indices in [`Record::checks`].
        red: Vec<usize>,
        /// The number of checks without a result, because each guest ended before them.
        #[serde(default, skip_serializing_if = "is_zero")]
        unseen: usize,
    },
    /// No check was red, but the kernel panicked, complained or hung, twice.
    Ended {
        /// The kernel's complaint.
        why: String,
        /// The checks that were running then, as indices in [`Record::checks`].
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        during: Vec<usize>,
    },
    /// All checks were green.
    Undetected,
    /// It compiles to the same code as the original.
    SameCode,
    /// It does not compile.
    Invalid {
        /// The compiler's message.
        why: String,
    },
}

impl Outcome {
    /// The indices of the red checks.
    pub fn red(&self) -> &[usize] {
        match self {
            Self::Killed { red, .. } => red,
            _ => &[],
        }
    }

    /// The indices of the checks during which the kernel ended its guest, and none was red.
    pub fn during(&self) -> &[usize] {
        match self {
            Self::Ended { during, .. } => during,
            _ => &[],
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// An alteration and its outcome.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Entry {
    /// Its name.
    pub id: String,
    /// The altered function, or the file of a named alteration.
    pub place: String,
    /// The altered line.
    pub line: usize,
    /// The target of the final outcome.
    pub on: String,
    /// A digest of the change, if the name does not show it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// The outcome.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The result of lockstep alone, if it was run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lockstep: Option<Lockstep>,
}

/// The record of a campaign.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// The target.
    pub target: String,
    /// The kernel's source.
    pub source: String,
    /// The altered file.
    pub file: String,
    /// The digest of the suite's sources.
    pub suite: String,
    /// Whether each alteration ran to the end of the suite. Otherwise its first red check ended it.
    pub whole: bool,
    /// The number of operations of lockstep.
    #[serde(default)]
    pub operations: u64,
    /// The number of mutants that exist.
    pub all: usize,
    /// How long the mutants took in seconds, all runs together; 0 if unknown.
    #[serde(default)]
    pub mutants_seconds: u64,
    /// The same for the named alterations.
    #[serde(default)]
    pub named_seconds: u64,
    /// The checks that ran on the unaltered kernels.
    pub checks: Vec<String>,
    /// The checks that the targets skip.
    pub skipped: Vec<String>,
    /// The mutants that were tried, in the order of the file.
    pub mutants: Vec<Entry>,
    /// The named alterations that were tried.
    pub named: Vec<Entry>,
}

impl Record {
    /// Reads a record from a file.
    pub fn read(file: &Path) -> Result<Self> {
        let fail = |why: String| {
            Error::unavailable(Phase::Targets, format!("{}: {}", file.display(), one_line(&why)))
        };
        let text = fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| fail(error.to_string()))
    }

    /// Continues from an earlier record. Returns whether kernel, suite, `whole` and number of
    /// operations are the same; otherwise does nothing.
    pub fn resume(&mut self, earlier: Self) -> bool {
        let of = |record: &Self| {
            let Self { target, source, file, suite, whole, operations, .. } = record.clone();
            (target, source, file, suite, whole, operations)
        };
        let same = of(self) == of(&earlier);
        if same {
            *self = earlier;
        }
        same
    }

    /// Forgets these mutants if they are undetected, so that they run again.
    pub fn forget_undetected(&mut self, wanted: impl Fn(&str) -> bool) {
        let is_again = |entry: &Entry| entry.outcome == Outcome::Undetected && wanted(&entry.id);
        self.mutants.retain(|entry| !is_again(entry));
    }

    /// Returns the entry of an alteration, if it was tried.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.mutants.iter().chain(&self.named).find(|entry| entry.id == id)
    }

    /// Inserts an entry at its position in `order`.
    pub fn put(&mut self, entry: Entry, order: &[String]) {
        let list = if entry.digest.is_empty() { &mut self.mutants } else { &mut self.named };
        list.retain(|other| other.id != entry.id);
        list.push(entry);
        list.sort_by_cached_key(|entry| order.iter().position(|id| *id == entry.id));
    }

    /// The names of an entry's red checks.
    pub fn red<'a>(&'a self, entry: &'a Entry) -> impl Iterator<Item = &'a str> {
        entry.outcome.red().iter().map(|&place| self.checks[place].as_str())
    }

    /// Returns the checks' indices and adds new checks.
    pub fn places(&mut self, ids: &[String]) -> Vec<usize> {
        let place = |id: &String| match self.checks.iter().position(|known| known == id) {
            Some(place) => place,
            None => {
                self.skipped.retain(|skipped| skipped != id);
                self.checks.push(id.clone());
                self.checks.len() - 1
            }
        };
        ids.iter().map(place).collect()
    }

    /// Returns at most `most` of these checks: those that were red, the most frequent first.
    pub fn killers(&self, among: &[String], most: usize) -> Vec<String> {
        let mut times = vec![0_usize; self.checks.len()];
        for entry in self.mutants.iter().chain(&self.named) {
            entry.outcome.red().iter().for_each(|&place| times[place] += 1);
        }
        let red = |id: &String| self.checks.iter().position(|c| c == id).map_or(0, |at| times[at]);
        let mut killers: Vec<String> = among.iter().filter(|id| red(id) > 0).cloned().collect();
        killers.sort_by_key(|id| std::cmp::Reverse(red(id)));
        killers.truncate(most);
        killers
    }

    /// Adds checks that a target skips.
    pub fn skip(&mut self, ids: Vec<String>) {
        for id in ids {
            if !self.checks.contains(&id) && !self.skipped.contains(&id) {
                self.skipped.push(id);
            }
        }
    }

    /// Returns the alterations that turned a check red, those with the fewest red checks first.
    pub fn turned_red(&self, check: &str) -> Vec<&Entry> {
        let place = self.checks.iter().position(|known| known == check);
        let is_red = |e: &&Entry| place.is_some_and(|place| e.outcome.red().contains(&place));
        let mut found: Vec<&Entry> =
            self.named.iter().chain(&self.mutants).filter(is_red).collect();
        found.sort_by_key(|entry| entry.outcome.red().len());
        found
    }

    /// Returns an alteration for which the kernel ended the guest during a check.
    pub fn ended_during(&self, check: &str) -> Option<&Entry> {
        let place = self.checks.iter().position(|known| known == check)?;
        let mut all = self.named.iter().chain(&self.mutants);
        all.find(|entry| entry.outcome.during().contains(&place))
    }

    /// Writes JSON with one line for each alteration, for readable diffs.
    pub fn to_json(&self) -> String {
        let mut head =
            serde_json::to_value(Self { mutants: Vec::new(), named: Vec::new(), ..self.clone() })
                .expect("text and numbers");
        let mut text = String::from("{");
        for (key, value) in head.as_object_mut().into_iter().flatten() {
            if !["mutants", "named"].contains(&key.as_str()) {
                text += &format!("\"{key}\":{value},\n");
            }
        }
        let lines = |entries: &[Entry]| {
            let line = |entry| serde_json::to_string(entry).expect("text and numbers");
            entries.iter().map(line).collect::<Vec<_>>().join(",\n")
        };
        let (mutants, named) = (lines(&self.mutants), lines(&self.named));
        text + &format!("\"mutants\":[\n{mutants}\n],\n\"named\":[\n{named}\n]}}\n")
    }
}
