//! Finds and downloads packages.

use super::apt::{apt, search};
use crate::cache::Cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::progress::Step;
use crate::run::read;
use crate::target::{Pin, Pins, Wanted};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// A package that apt can download.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Package {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its suite.
    pub(super) suite: String,
    /// The locked version, if the archive no longer has it.
    #[serde(default)]
    pub(super) instead_of: Option<String>,
}

/// The time until the next search for the newest version.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

impl Package {
    /// Returns the package: its locked version if the archive has that, else the newest one.
    pub fn find(wanted: &Wanted, cache: &Cache) -> Result<Self> {
        let known = Self::remembered(wanted, cache);
        if let Some((package, age)) = &known {
            if *age < DAY && package.is(wanted) {
                return Ok(package.clone());
            }
        }
        match (Self::searched(wanted, cache)?, known) {
            (Ok(package), _) => {
                let (text, memory) =
                    (serde_json::to_string(&package).unwrap_or_default(), memory(wanted, cache));
                fs::write(&memory, text).or_unavailable(Phase::Source, memory.display())?;
                Ok(package)
            }
            (Err(why), Some((package, _))) => {
                eprintln!("using {package} as before: {why}");
                Ok(package)
            }
            (Err(why), None) => Err(Error::unavailable(Phase::Source, why)),
        }
    }

    /// Searches the archive. The inner error is the reason why it is not there.
    fn searched(wanted: &Wanted, cache: &Cache) -> Result<std::result::Result<Self, String>> {
        let _lock = cache.lock(Phase::Source, &format!("apt-{}", wanted.suite))?;
        let found = search(wanted, cache);
        Ok(found.map_err(|why| format!("{why}; --source takes a tree instead")))
    }

    /// Whether a remembered package is the right one.
    fn is(&self, wanted: &Wanted) -> bool {
        wanted.pin.as_ref().is_none_or(|pin| {
            (&pin.name, &pin.version) == (&self.name, &self.version)
                || self.instead_of == Some(pin.text())
        })
    }

    /// Returns the last result of `find`, without a search.
    pub fn last_known(wanted: &Wanted, cache: &Cache) -> Option<Self> {
        let (package, _) = Self::remembered(wanted, cache)?;
        package.is(wanted).then_some(package)
    }

    fn remembered(wanted: &Wanted, cache: &Cache) -> Option<(Self, Duration)> {
        let memory = memory(wanted, cache);
        let time = fs::metadata(&memory).ok()?.modified().ok()?;
        let mut package: Self = serde_json::from_str(&fs::read_to_string(&memory).ok()?).ok()?;
        // The lock may have been raised since.
        let pin = wanted.pin.as_ref().map(Pin::text);
        package.instead_of = package.instead_of.filter(|locked| Some(locked) == pin.as_ref());
        Some((package, SystemTime::now().duration_since(time).unwrap_or_default()))
    }

    /// Its identity, for keys.
    pub fn identity(&self) -> String {
        format!("package {}", self.short())
    }

    /// Its name and version.
    pub fn short(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The name for its directory. A version may contain characters that are special to `make`.
    pub fn directory(&self) -> String {
        format!("{}-{}", self.name, self.version.replace([':', '~'], "_"))
    }

    /// Downloads the package into a directory.
    pub fn download(&self, cache: &Cache, directory: &Path) -> Result<PathBuf> {
        let fail = |why: String| Error::unavailable(Phase::Source, why);
        let step = Step::begin(format!("download {self}"));
        let mut apt = apt("apt-get", &cache.apt(&self.suite));
        apt.arg("download").arg(format!("{}={}", self.name, self.version));
        read(apt.current_dir(directory)).map_err(fail)?;
        step.done();
        let files = fs::read_dir(directory).or_unavailable(Phase::Source, directory.display())?;
        let mut paths = files.filter_map(|entry| Some(entry.ok()?.path()));
        let file = paths.find(|path| path.extension().is_some_and(|name| name == "deb"));
        file.ok_or_else(|| fail("apt-get download left no package".into()))
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
            changes += &format!("{pattern} ({suite}): {before} -> {}\n", pin.text());
        }
        pins.package.push(pin);
    }
    pins.store(base)?;
    Ok(changes)
}

impl fmt::Display for Package {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.short())?;
        match &self.instead_of {
            Some(locked) => write!(f, " (the archive lacks the locked {locked})"),
            None => Ok(()),
        }
    }
}

/// The file that stores the result of the last search.
fn memory(Wanted { pattern, suite, .. }: &Wanted, cache: &Cache) -> PathBuf {
    cache.at("sources").join(format!("{pattern}@{suite}.json"))
}

#[cfg(test)]
mod tests {
    use super::*;
    fn package(version: &str, instead_of: Option<&str>) -> Package {
        let instead_of = instead_of.map(str::to_string);
        Package {
            name: "linux-source-7.3".into(),
            version: version.into(),
            suite: "sid".into(),
            instead_of,
        }
    }

    #[test]
    fn a_locked_version_is_the_only_right_one() {
        let [pattern, suite, name, version] =
            ["linux-source-7", "sid", "linux-source-7.3", "7.3.4-1"].map(String::from);
        let pins = Pins { package: vec![Pin { pattern, suite, name, version }] };
        let wanted = pins.wanted("linux-source-7", "sid");
        assert!(package("7.3.4-1", None).is(&wanted));
        assert!(!package("7.3.5-1", None).is(&wanted));
        assert!(package("7.3.5-1", Some("linux-source-7.3 7.3.4-1")).is(&wanted));
        assert!(!package("7.3.5-1", Some("linux-source-7.3 7.3.3-1")).is(&wanted));
        let free = pins.wanted("linux-source-7", "trixie");
        assert_eq!(free.pin, None);
        assert!(package("7.3.5-1", None).is(&free));
    }
}
