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
    /// Mutants that other targets may notice where the campaign's own does not.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
    /// Mutants that do what the original does, and the proof.
    #[serde(default)]
    pub equivalent: Vec<Remark>,
    /// What is known of mutants that no check notices.
    #[serde(default)]
    pub undetected: Vec<Remark>,
}

/// A target that can tell more of some mutants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// The target.
    pub target: String,
    /// The checks and topics that it runs for them.
    pub checks: Vec<String>,
    /// Words of the mutants' names, one of which is enough.
    pub words: Vec<String>,
}

/// What is said of some mutants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// What.
    pub because: String,
    /// The mutants.
    pub ids: Vec<String>,
}

impl Subject {
    /// Reads `mutants/<name>` below `base`.
    pub fn load(base: &Path, name: &str) -> Result<Self> {
        let file = base.join("mutants").join(name);
        let fail = |message: String| {
            Error::unavailable(Phase::Targets, format!("{}: {message}", file.display()))
        };
        let text = fs::read_to_string(&file).map_err(|error| fail(error.to_string()))?;
        let subject: Self = toml::from_str(&text).map_err(|e| fail(one_line(&e.to_string())))?;
        let mut seen = Vec::new();
        for Remark { because, ids } in subject.equivalent.iter().chain(&subject.undetected) {
            if because.trim().is_empty() || ids.is_empty() {
                return Err(fail("a remark needs `because` and `ids`".into()));
            }
            for id in ids {
                if seen.contains(&id) {
                    return Err(fail(format!("`{id}` is remarked on twice")));
                }
                seen.push(id);
            }
        }
        Ok(subject)
    }

    /// All mutants that something is said of.
    pub fn remarked(&self) -> impl Iterator<Item = &String> {
        self.equivalent.iter().chain(&self.undetected).flat_map(|remark| &remark.ids)
    }

    /// Whether the mutant is proved to do what the original does.
    pub fn is_equivalent(&self, id: &str) -> bool {
        self.equivalent.iter().flat_map(|remark| &remark.ids).any(|other| other == id)
    }

    /// Why no check notices the mutant, if somebody has written it down.
    pub fn excuse(&self, id: &str) -> Option<&str> {
        let of = |remark: &&Remark| remark.ids.iter().any(|other| other == id);
        self.undetected.iter().find(of).map(|remark| remark.because.as_str())
    }
}
