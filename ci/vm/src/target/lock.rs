//! `targets.lock`: the package versions that the targets were last proved with.

use crate::error::{Error, OrUnavailable as _, Phase, Result, one_line};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

/// The name of the file beside `targets.toml`.
pub const FILE: &str = "targets.lock";

const HEAD: &str = "\
# The package versions that the targets were last proved with. `cargo vm lock` raises them.
";

/// A package that targets use.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Wanted {
    /// Its name, or the beginning of several names.
    pub pattern: String,
    /// The suite to search.
    pub suite: String,
    /// Its locked version. Without one it is the newest.
    pub pin: Option<Pin>,
}

/// A locked version.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pin {
    /// The name that was searched for.
    pub pattern: String,
    /// The suite of the search.
    pub suite: String,
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// All locked versions.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    /// One for each package.
    #[serde(default)]
    pub package: Vec<Pin>,
}

impl Pin {
    /// Its name and version, for people.
    pub fn text(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

impl Pins {
    /// Reads the file in this directory. Without one, nothing is locked.
    pub fn load(base: &Path) -> Result<Self> {
        let file = base.join(FILE);
        let fail =
            |why: String| Error::unavailable(Phase::Targets, format!("{}: {why}", file.display()));
        match fs::read_to_string(&file) {
            Ok(text) => toml::from_str(&text)
                .map_err(|error: toml::de::Error| fail(one_line(&error.to_string()))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Self::default()),
            Err(error) => Err(fail(error.to_string())),
        }
    }

    /// Writes the file in this directory.
    pub fn store(&self, base: &Path) -> Result<()> {
        let text = toml::to_string(self)
            .map_err(|error| Error::unavailable(Phase::Targets, format!("{FILE}: {error}")))?;
        let file = base.join(FILE);
        fs::write(&file, format!("{HEAD}\n{text}")).or_unavailable(Phase::Targets, file.display())
    }

    /// Returns a package with its locked version.
    pub fn wanted(&self, pattern: &str, suite: &str) -> Wanted {
        let is = |pin: &&Pin| (&*pin.pattern, &*pin.suite) == (pattern, suite);
        let (pattern, suite) = (pattern.into(), suite.into());
        Wanted { pin: self.package.iter().find(is).cloned(), pattern, suite }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_file_locks_nothing_and_a_bad_one_is_an_error() {
        let base = tempfile::tempdir().expect("a directory");
        assert!(Pins::load(base.path()).expect("none").package.is_empty());
        fs::write(base.path().join(FILE), "[[package]]\nname = 'a'\n").expect("a file");
        let why = Pins::load(base.path()).expect_err("incomplete").to_string();
        assert!(why.contains(FILE) && why.contains("pattern"), "{why}");
    }
}
