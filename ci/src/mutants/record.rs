//! What came of the mutants, as it is kept.

use super::mutant::Mutant;
use crate::error::{Error, Phase, Result, one_line};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// What came of one mutant.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(tag = "outcome", rename_all = "kebab-case")]
pub enum Outcome {
    /// A check went red.
    Killed {
        /// The check.
        by: String,
    },
    /// The kernel did not survive the suite: it panicked, complained or hung.
    Crashed {
        /// What it said.
        why: String,
    },
    /// The suite is green.
    Survived,
    /// The compiler makes the same of it as of the original.
    SameCode,
    /// It does not compile.
    Invalid {
        /// What the compiler says.
        why: String,
    },
}

/// A mutant and what came of it.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Entry {
    /// The mutant.
    pub id: String,
    /// Its function.
    pub function: String,
    /// The line that it alters.
    pub line: usize,
    /// What came of it.
    #[serde(flatten)]
    pub outcome: Outcome,
}

impl Entry {
    /// What came of this mutant.
    pub fn new(mutant: &Mutant, outcome: Outcome) -> Self {
        let Mutant { id, function, line, .. } = mutant;
        Self { id: id.clone(), function: function.clone(), line: *line, outcome }
    }
}

/// All of a run.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct Record {
    /// The target.
    pub target: String,
    /// The source of its kernel.
    pub source: String,
    /// The file that is altered.
    pub file: String,
    /// How many mutants there are.
    #[serde(default)]
    pub all: usize,
    /// Those that were tried, in the order of the file.
    pub mutants: Vec<Entry>,
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

    /// JSON with a line for each mutant, so that a change of one is a change of a line.
    pub fn to_json(&self) -> String {
        let value = |text: &str| serde_json::Value::from(text).to_string();
        let lines: Vec<String> = self
            .mutants
            .iter()
            .map(|entry| serde_json::to_string(entry).expect("text and numbers"))
            .collect();
        format!(
            "{{\"target\":{},\"source\":{},\"file\":{},\"all\":{},\"mutants\":[\n{}\n]}}\n",
            value(&self.target),
            value(&self.source),
            value(&self.file),
            self.all,
            lines.join(",\n")
        )
    }
}
