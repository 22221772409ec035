//! Named alterations, written by hand as data: `mutants/kernel/*.toml` and
//! `mutants/library/*.toml`.

use super::mutant::Mutant;
use super::operators::Edit;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result, one_line};
use kcov_vm::hash;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// One alteration of one place.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Named {
    /// Its name, which describes the fault.
    pub name: String,
    /// The file's path in the tree.
    pub file: String,
    /// The text to replace; it occurs once.
    pub find: String,
    /// The new text.
    pub with: String,
    /// The checks that must go red.
    pub red: Vec<String>,
    /// Why no check may notice it.
    pub undetected: Option<String>,
}

/// The target and the checks of alterations.
#[derive(Clone, Debug, Default, Deserialize, Eq, Ord, PartialEq, PartialOrd)]
pub struct Where {
    /// The target, if it is not the campaign's.
    pub on: Option<String>,
    /// The checks and topics; empty means all.
    #[serde(default)]
    pub checks: Vec<String>,
}

#[derive(Deserialize)]
struct File {
    #[serde(flatten)]
    place: Where,
    alteration: Vec<Named>,
}

/// Reads all files of `<kind>` in the directory `data`.
pub fn load(data: &Path, kind: &str) -> Result<BTreeMap<Where, Vec<Named>>> {
    let directory = data.join(kind);
    let mut all: BTreeMap<Where, Vec<Named>> = BTreeMap::new();
    let mut files = Vec::new();
    for entry in fs::read_dir(&directory).or_unavailable(Phase::Targets, directory.display())? {
        files.push(entry.or_unavailable(Phase::Targets, directory.display())?.path());
    }
    files.sort();
    for path in files {
        let text = fs::read_to_string(&path).or_unavailable(Phase::Targets, path.display())?;
        let file: File = toml::from_str(&text).map_err(|error| {
            let why = format!("{}: {}", path.display(), one_line(&error.to_string()));
            Error::unavailable(Phase::Targets, why)
        })?;
        all.entry(file.place).or_default().extend(file.alteration);
    }
    Ok(all)
}

impl Named {
    /// Returns the alteration of its file's text.
    pub fn mutant(&self, text: &str) -> Result<Mutant> {
        let mut places = text.match_indices(&self.find);
        let (Some((start, _)), None) = (places.next(), places.next()) else {
            let why = format!(
                "`{}`: the text of `find` occurs {} times in {}; it must occur once",
                self.name,
                text.matches(&self.find).count(),
                self.file
            );
            return Err(Error::unavailable(Phase::Targets, why));
        };
        Ok(Mutant {
            id: self.name.clone(),
            function: self.file.clone(),
            line: text[..start].matches('\n').count() + 1,
            edit: Edit {
                operator: "named",
                place: start..start + self.find.len(),
                with: self.with.clone(),
            },
            digest: self.digest(),
        })
    }

    /// A digest of the change, independent of its name.
    pub fn digest(&self) -> String {
        let text = format!("{}\0{}\0{}", self.file, self.find, self.with);
        hash::bytes(text.as_bytes())[..12].to_string()
    }
}
