//! What is altered, as data: `mutants/<name>.toml` beside the targets.

use crate::error::{Error, Phase, Result, one_line};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A file of the kernel and what there is to know for altering it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Subject {
    /// The file, by its path in the tree.
    pub file: String,
    /// The functions that are altered. All of the file stand here or under `others`.
    pub functions: Vec<String>,
    /// The functions that are not.
    #[serde(default)]
    pub others: Vec<String>,
    /// Error numbers; each is replaced with the next one, the last with the first.
    pub errnos: Vec<String>,
    /// Names that are replaced with each other.
    pub swaps: Vec<(String, String)>,
    /// Macros that are no C for the parser, left out with their arguments.
    pub attributes: Vec<String>,
    /// Macros around code, left out without what is in their parentheses.
    pub wrappers: Vec<String>,
    /// Alterations that change nothing that can be seen.
    #[serde(default)]
    pub equivalent: Vec<Equivalent>,
    /// What is known of mutants that somebody could notice, and no check does.
    #[serde(default)]
    pub missed: Vec<Missed>,
}

/// A mutant that survives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Missed {
    /// The mutant.
    pub id: String,
    /// Why no check notices.
    pub because: String,
}

/// Mutants that do what the original does, and why.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Equivalent {
    /// Why nobody could tell.
    pub reason: String,
    /// The targets on which it is so; all if there are none.
    #[serde(default)]
    pub on: Vec<String>,
    /// The mutants.
    pub ids: Vec<String>,
}

impl Subject {
    /// Reads `mutants/<name>` below `base`, as it concerns a target.
    pub fn load(base: &Path, name: &str, target: &str) -> Result<Self> {
        let file = base.join("mutants").join(name);
        let fail = |message: String| {
            Error::unavailable(Phase::Targets, format!("{}: {message}", file.display()))
        };
        let text = fs::read_to_string(&file).map_err(|error| fail(error.to_string()))?;
        let mut subject: Self =
            toml::from_str(&text).map_err(|e| fail(one_line(&e.to_string())))?;
        let mut seen = Vec::new();
        for Equivalent { reason, ids, .. } in &subject.equivalent {
            if reason.trim().is_empty() || ids.is_empty() {
                return Err(fail("key `equivalent`: needs a reason and ids".into()));
            }
            for id in ids {
                if seen.contains(&id) {
                    return Err(fail(format!("key `equivalent`: `{id}` stands there twice")));
                }
                seen.push(id);
            }
        }
        subject.equivalent.retain(|Equivalent { on, .. }| {
            on.is_empty() || on.iter().any(|other| other == target)
        });
        Ok(subject)
    }

    /// Why no check notices the mutant, if somebody has written it down.
    pub fn missed(&self, id: &str) -> Option<&str> {
        let found = self.missed.iter().find(|entry| entry.id == id);
        found.map(|entry| entry.because.as_str())
    }

    /// Why the mutant is as good as the original, if it is known to be.
    pub fn equivalent(&self, id: &str) -> Option<&str> {
        let found = self.equivalent.iter().find(|entry| entry.ids.iter().any(|other| other == id));
        found.map(|entry| entry.reason.as_str())
    }
}
