//! `targets.lock`: the package versions that the targets were last proved with.

use super::Package;
use crate::cache::Cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result, WRITING, one_line};
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
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
    pattern: String,
    suite: String,
    /// The package's name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// All locked versions.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Pins {
    #[serde(default)]
    package: Vec<Pin>,
}

impl Pin {
    /// Its name and version, for people.
    pub fn text(&self) -> String {
        format!("{} {}", self.name, self.version)
    }
}

impl Wanted {
    /// Whether a remembered package is the right one.
    pub fn is(&self, package: &Package) -> bool {
        self.pin.as_ref().is_none_or(|pin| {
            (&pin.name, &pin.version) == (&package.name, &package.version)
                || package.instead_of == Some(pin.text())
        })
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

    /// Returns a package with its locked version.
    pub fn wanted(&self, pattern: &str, suite: &str) -> Wanted {
        let is = |pin: &&Pin| (&*pin.pattern, &*pin.suite) == (pattern, suite);
        let (pattern, suite) = (pattern.into(), suite.into());
        Wanted { pin: self.package.iter().find(is).cloned(), pattern, suite }
    }
}

/// Locks the newest version of each package. Returns the changes, one per line.
pub fn raise(base: &Path, wanted: &[Wanted], cache: &Cache) -> Result<String> {
    let (mut pins, mut changes) = (Pins::default(), String::new());
    for Wanted { pattern, suite, pin: before } in wanted {
        let newest = Wanted { pattern: pattern.clone(), suite: suite.clone(), pin: None };
        let Package { name, version, .. } = Package::searched(&newest, cache)?
            .map_err(|why| Error::unavailable(Phase::Source, why))?;
        let pin = Pin { pattern: pattern.clone(), suite: suite.clone(), name, version };
        if before.as_ref() != Some(&pin) {
            let before = before.as_ref().map_or("not locked".into(), Pin::text);
            writeln!(changes, "{pattern} ({suite}): {before} -> {}", pin.text()).expect(WRITING);
        }
        pins.package.push(pin);
    }
    let text = toml::to_string(&pins)
        .map_err(|error| Error::unavailable(Phase::Targets, format!("{FILE}: {error}")))?;
    let file = base.join(FILE);
    fs::write(&file, format!("{HEAD}\n{text}")).or_unavailable(Phase::Targets, file.display())?;
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "[[package]]\npattern = 'linux-source-7'\nsuite = 'sid'\n\
        name = 'linux-source-7.3'\nversion = '7.3.4-1'\n";

    fn package(version: &str, instead_of: Option<&str>) -> Package {
        let instead_of = instead_of.map(str::to_string);
        Package {
            name: "linux-source-7.3".into(),
            version: version.into(),
            suite: None,
            instead_of,
        }
    }

    #[test]
    fn a_locked_version_is_the_only_right_one() {
        let base = tempfile::tempdir().expect("a directory");
        fs::write(base.path().join(FILE), TEXT).expect("a file");
        let pins = Pins::load(base.path()).expect("valid");
        let wanted = pins.wanted("linux-source-7", "sid");
        assert!(wanted.is(&package("7.3.4-1", None)));
        assert!(!wanted.is(&package("7.3.5-1", None)));
        assert!(wanted.is(&package("7.3.5-1", Some("linux-source-7.3 7.3.4-1"))));
        assert!(!wanted.is(&package("7.3.5-1", Some("linux-source-7.3 7.3.3-1"))));
        let free = pins.wanted("linux-source-7", "trixie");
        assert_eq!(free.pin, None);
        assert!(free.is(&package("7.3.5-1", None)));
    }

    #[test]
    fn a_missing_file_locks_nothing_and_a_bad_one_is_an_error() {
        let base = tempfile::tempdir().expect("a directory");
        assert!(Pins::load(base.path()).expect("none").package.is_empty());
        fs::write(base.path().join(FILE), "[[package]]\nname = 'a'\n").expect("a file");
        let why = Pins::load(base.path()).expect_err("incomplete").to_string();
        assert!(why.contains(FILE) && why.contains("pattern"), "{why}");
    }
}
