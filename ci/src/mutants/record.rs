//! What came of the alterations, as it is kept.

use crate::error::{Error, Phase, Result, one_line};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// What came of one alteration.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// Checks went red.
    Killed {
        /// Which: places in [`Record::checks`].
        red: Vec<usize>,
        /// How many others had no result, because each guest had ended before them.
        #[serde(default, skip_serializing_if = "is_zero")]
        unseen: usize,
    },
    /// No check was red, and the kernel panicked, complained or hung, twice.
    Ended {
        /// What it said.
        why: String,
    },
    /// All is green.
    Undetected,
    /// The compiler makes the same of it as of the original.
    SameCode,
    /// It does not build.
    Invalid {
        /// What the compiler says.
        why: String,
    },
}

impl Outcome {
    /// The places of the red checks.
    pub fn red(&self) -> &[usize] {
        match self {
            Self::Killed { red, .. } => red,
            _ => &[],
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// An alteration and what came of it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Entry {
    /// Its name.
    pub id: String,
    /// The function that it alters; of a named alteration the file.
    pub place: String,
    /// The line that it alters.
    pub line: usize,
    /// The target that had the last word.
    pub on: String,
    /// What was altered into what, as a digest, where the name does not say it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub digest: String,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// All of a campaign.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// The target.
    pub target: String,
    /// The source of its kernel.
    pub source: String,
    /// The file that is altered.
    pub file: String,
    /// The digest of the suite's sources.
    pub suite: String,
    /// How many mutants there are.
    pub all: usize,
    /// The checks that have run on the unaltered kernels.
    pub checks: Vec<String>,
    /// Those that the targets skip.
    pub skipped: Vec<String>,
    /// The mutants that were tried, in the order of the file.
    pub mutants: Vec<Entry>,
    /// The named alterations that were tried.
    pub named: Vec<Entry>,
}

impl Record {
    /// Reads what was written.
    pub fn read(file: &Path) -> Result<Self> {
        let fail = |why: String| {
            Error::unavailable(Phase::Targets, format!("{}: {}", file.display(), one_line(&why)))
        };
        let text = fs::read_to_string(file).map_err(|error| fail(error.to_string()))?;
        serde_json::from_str(&text).map_err(|error| fail(error.to_string()))
    }

    /// Takes over what another record says, if it is of the same kernel and suite.
    pub fn resume(&mut self, earlier: Self) -> bool {
        let of = |record: &Self| {
            let Self { target, source, file, suite, .. } = record.clone();
            (target, source, file, suite)
        };
        let same = of(self) == of(&earlier);
        if same {
            *self = earlier;
        }
        same
    }

    /// What came of an alteration, if it was tried.
    pub fn find(&self, id: &str) -> Option<&Entry> {
        self.mutants.iter().chain(&self.named).find(|entry| entry.id == id)
    }

    /// Notes what came of one, in this order of names.
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

    /// The checks' places, for checks that are new too.
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

    /// Notes checks that a target skips.
    pub fn skip(&mut self, ids: Vec<String>) {
        for id in ids {
            if !self.checks.contains(&id) && !self.skipped.contains(&id) {
                self.skipped.push(id);
            }
        }
    }

    /// All that has turned a check red: those first that turned few others red.
    pub fn turned_red(&self, check: &str) -> Vec<&Entry> {
        let place = self.checks.iter().position(|known| known == check);
        let is_red = |e: &&Entry| place.is_some_and(|place| e.outcome.red().contains(&place));
        let mut found: Vec<&Entry> =
            self.named.iter().chain(&self.mutants).filter(is_red).collect();
        found.sort_by_key(|entry| entry.outcome.red().len());
        found
    }

    /// JSON with a line for each alteration, so that a change of one is a change of a line.
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
