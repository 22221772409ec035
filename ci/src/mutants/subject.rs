//! The description of the altered file, as data: `mutants/<name>.toml` beside the
//! targets.

use kcov_vm::error::{Error, Phase, Result, one_line};
use serde::Deserialize;
use std::fs;
use std::path::Path;

/// A kernel file and the facts for altering it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Subject {
    /// The page's title.
    pub title: String,
    /// The page's file.
    pub page: String,
    /// The command's options in addition to the usual ones.
    #[serde(default)]
    pub options: String,
    /// What the page says about the kernel, if anything.
    #[serde(default)]
    pub kernel: String,
    /// The directory of named alterations of the kernel.
    pub named: String,
    /// Whether there are named alterations of the library.
    #[serde(default)]
    pub library: bool,
    /// The file's path in the tree.
    pub file: String,
    /// The functions to alter. Each function of the file is listed here or in
    /// `others`.
    pub functions: Vec<String>,
    /// The functions not to alter.
    #[serde(default)]
    pub others: Vec<String>,
    /// Error numbers. Each is replaced with the next one, and the last with the
    /// first.
    pub errnos: Vec<String>,
    /// Names that are swapped for each other.
    pub swaps: Vec<(String, String)>,
    /// Macros that the parser cannot read; they are blanked out with their
    /// arguments.
    pub attributes: Vec<String>,
    /// Names that are defined when the file is compiled.
    #[serde(default)]
    pub defined: Vec<String>,
    /// Macros around code; they are blanked out, but their arguments stay.
    pub wrappers: Vec<String>,
    /// How lockstep runs on altered kernels.
    #[serde(default)]
    pub lockstep: Plan,
    /// Mutants that other targets may detect when the campaign's target does not.
    #[serde(default)]
    pub elsewhere: Vec<Elsewhere>,
    /// Mutants that behave like the original, with proofs.
    #[serde(default)]
    pub equivalent: Vec<Remark>,
    /// Known reasons why mutants stay undetected.
    #[serde(default)]
    pub undetected: Vec<Remark>,
}

/// Where lockstep runs and how long. The seed is always 1.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The number of operations.
    pub operations: u64,
    /// The targets with kernels that can run it.
    pub targets: Vec<String>,
}

impl Plan {
    /// The suite's arguments. A failure to prove the declaration would not be lockstep's merit.
    pub fn words(&self) -> Vec<String> {
        let operations = format!("--operations={}", self.operations);
        let words = ["lockstep", &operations, "--seed=1", "--unshortened", "--unproved"];
        words.map(String::from).into()
    }
}

/// A target that can judge some mutants better.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Elsewhere {
    /// The target.
    pub target: String,
    /// The checks and topics that it runs for them.
    pub checks: Vec<String>,
    /// A mutant is meant if its name contains one of these.
    pub words: Vec<String>,
}

/// A remark on some mutants.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remark {
    /// The remark.
    pub because: String,
    /// The mutants.
    pub ids: Vec<String>,
}

impl Subject {
    /// Reads `<name>` in the directory `data`.
    pub fn load(data: &Path, name: &str) -> Result<Self> {
        let file = data.join(name);
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
                    return Err(fail(format!("`{id}` has two remarks")));
                }
                seen.push(id);
            }
        }
        Ok(subject)
    }

    /// All mutants with a remark.
    pub fn remarked(&self) -> impl Iterator<Item = &String> {
        self.equivalent.iter().chain(&self.undetected).flat_map(|remark| &remark.ids)
    }

    /// Whether the mutant is proved to be equivalent.
    pub fn is_equivalent(&self, id: &str) -> bool {
        self.equivalent.iter().flat_map(|remark| &remark.ids).any(|other| other == id)
    }

    /// Returns the known reason why no check notices the mutant.
    pub fn excuse(&self, id: &str) -> Option<&str> {
        let of = |remark: &&Remark| remark.ids.iter().any(|other| other == id);
        self.undetected.iter().find(of).map(|remark| remark.because.as_str())
    }
}
