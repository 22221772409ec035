//! The suite's sources.

use kcov_vm::error::{OrUnavailable as _, Phase, Result};
use kcov_vm::hash;
use kcov_vm::system::System;
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace that built this program.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}

/// The directory of this program's data.
pub fn data() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The suite's sources. Results are valid for one state of them.
const SOURCES: &[&str] = &[
    "conformance/claims",
    "conformance/src",
    "kcov-sys/src",
    "kcov/model/src",
    "kcov/signal/src",
    "kcov/src",
];

/// Names of directories and files in them that guests do not use.
const UNUSED: &[&str] = &["fake", "snapshots", "tests"];

/// Files without a part in verdicts: the command line, and the list of modules.
const OUTER: &[&str] = &["conformance/src/cli.rs", "conformance/src/lib.rs"];

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
    !OUTER.iter().any(|outer| path == Path::new(outer))
        && path.with_extension("").iter().all(|name| {
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
pub fn files(directory: &Path) -> Result<Vec<PathBuf>> {
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

#[cfg(test)]
mod tests {
    use super::{code, is_used};
    use kcov_vm::system::System;
    use std::path::Path;

    #[test]
    fn files_of_the_other_system_do_not_change_the_digest() {
        let used = |path| is_used(Path::new(path), System::NetBsd);
        assert!(used("conformance/src/linux/raw/usbip.rs"));
        assert!(used("conformance/claims/linux-driver.toml"));
        assert!(!used("conformance/claims/netbsd-driver.toml"));
        assert!(!used("kcov/src/sys/netbsd.rs"));
        assert!(!used("conformance/src/netbsd/checks/open.rs"));
        assert!(!used("kcov/signal/src/shared/tests.rs"));
    }

    #[test]
    fn comments_do_not_change_the_digest() {
        let text = "//! What it is.\n#[test]\nfn f() {\n    // Why.\n    g(); // after code\n}\n";
        assert_eq!(code(text), "#[test]\nfn f() {\ng(); // after code\n}");
        assert_eq!(code("# A claim.\n[[claim]]\nid = \"a\"\n"), "[[claim]]\nid = \"a\"");
    }
}
