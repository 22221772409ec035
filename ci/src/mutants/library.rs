//! A copy of the workspace that builds the suite, unaltered or with an altered library.

use super::mutant::Mutant;
use crate::cache::{Cache, Lock};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::netbsd::Libraries;
use crate::programs::{self, workspace};
use crate::system::System;
use std::fs;
use std::path::{Path, PathBuf};

/// The suite's sources. Results are valid for one state of them.
const SOURCES: &[&str] =
    &["conformance/claims", "conformance/src", "kcov-sys/src", "kcov/signal/src", "kcov/src"];

/// Names of directories and files in them that guests do not use.
const UNUSED: &[&str] = &["drift", "reference", "snapshots", "tests"];

/// Returns the digest of the suite's sources for a system, without comments.
pub fn digest(system: System) -> Result<String> {
    let other = match system {
        System::Linux => System::NetBsd,
        System::NetBsd => System::Linux,
    };
    let mut text = String::new();
    for directory in SOURCES {
        for path in files(&workspace().join(directory))? {
            let name = path.strip_prefix(workspace()).unwrap_or(&path);
            if !is_used(name, other) {
                continue;
            }
            let content = fs::read_to_string(&path).or_unavailable(Phase::Image, path.display())?;
            text += &format!("{} {}\n", name.display(), hash::bytes(code(&content).as_bytes()));
        }
    }
    Ok(hash::bytes(text.as_bytes())[..16].to_string())
}

/// Whether guests use this file: it is no test or page, and not only for the `other` system.
fn is_used(path: &Path, other: System) -> bool {
    path.with_extension("").iter().all(|name| {
        let name = name.to_string_lossy();
        !UNUSED.contains(&&*name) && name.split('-').all(|word| word != other.word())
    })
}

/// Returns a file's lines without blank lines and pure comment lines, in Rust or TOML.
fn code(content: &str) -> String {
    let attribute = |line: &str| line.starts_with("#[") || line.starts_with("#!");
    let comment = |line: &str| line.starts_with("//") || line.starts_with('#') && !attribute(line);
    let lines = content.lines().map(str::trim).filter(|line| !line.is_empty() && !comment(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns all files below a directory, sorted, without build output and git's own files.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).or_unavailable(Phase::Image, directory.display())? {
        let path = entry.or_unavailable(Phase::Image, directory.display())?.path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("target" | ".git") => {}
            _ if path.is_dir() => found.extend(files(&path)?),
            _ => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}

/// The copy. It stays in the cache, so that builds are incremental. A campaign holds its lock, so
/// that it tests one suite throughout.
pub struct Library<'a> {
    directory: PathBuf,
    /// The user's libraries for NetBSD.
    netbsd: Option<&'a Libraries>,
    _lock: Lock,
}

impl<'a> Library<'a> {
    /// Opens the copy and updates it.
    pub fn open(cache: &Cache, netbsd: Option<&'a Libraries>) -> Result<Self> {
        let lock = cache.lock(Phase::Build, "bench-library")?;
        let library = Self { directory: cache.benches().join("library"), netbsd, _lock: lock };
        for path in files(workspace())? {
            let content = fs::read(&path).or_unavailable(Phase::Image, path.display())?;
            library.put(path.strip_prefix(workspace()).unwrap_or(&path), &content)?;
        }
        Ok(library)
    }

    /// Returns the content of a workspace file.
    pub fn original(file: &str) -> Result<String> {
        let path = workspace().join(file);
        fs::read_to_string(&path).or_unavailable(Phase::Targets, path.display())
    }

    /// Builds the unaltered suite.
    pub fn unaltered(&self, triple: &str) -> Result<PathBuf> {
        programs::build_suite_of(&self.directory, triple, self.netbsd)
    }

    /// Builds the suite with one file altered. The next build replaces the result.
    pub fn build(&self, alteration: &Mutant, triple: &str) -> Result<PathBuf> {
        let file = Path::new(&alteration.function);
        let original = Self::original(&alteration.function)?;
        self.put(file, alteration.apply(&original).as_bytes())?;
        let built = self.unaltered(triple);
        self.put(file, original.as_bytes())?;
        built.map_err(|error| match error {
            Error::Unavailable(failure) => {
                let why = format!("`{}`: {}", alteration.id, failure.message);
                Error::unavailable(Phase::Build, why)
            }
            other => other,
        })
    }

    /// Writes only changed content, because cargo compares modification times.
    fn put(&self, file: &Path, content: &[u8]) -> Result<()> {
        let path = self.directory.join(file);
        if fs::read(&path).is_ok_and(|now| now == content) {
            return Ok(());
        }
        fs::create_dir_all(path.parent().unwrap_or(&self.directory))
            .and_then(|()| fs::write(&path, content))
            .or_unavailable(Phase::Image, path.display())
    }
}

#[cfg(test)]
mod tests {
    use super::{code, is_used};
    use crate::system::System;
    use std::path::Path;

    #[test]
    fn files_of_the_other_system_do_not_change_the_digest() {
        let used = |path| is_used(Path::new(path), System::NetBsd);
        assert!(used("conformance/src/raw/linux/usb.rs"));
        assert!(used("conformance/claims/linux-driver.toml"));
        assert!(!used("conformance/claims/netbsd-driver.toml"));
        assert!(!used("kcov/src/sys/netbsd.rs"));
        assert!(!used("conformance/src/checks/netbsd/open.rs"));
        assert!(!used("conformance/src/model/tests/rows.rs"));
    }

    #[test]
    fn comments_do_not_change_the_digest() {
        let text = "//! What it is.\n#[test]\nfn f() {\n    // Why.\n    g(); // after code\n}\n";
        assert_eq!(code(text), "#[test]\nfn f() {\ng(); // after code\n}");
        assert_eq!(code("# A claim.\n[[claim]]\nid = \"a\"\n"), "[[claim]]\nid = \"a\"");
    }
}
