//! Finds the libraries of a NetBSD release that the user gave.

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::progress::Step;
use crate::run::{command, read};
use std::fs;
use std::path::{Path, PathBuf};

/// The files that a static program needs and that exist in one form only.
const REQUIRED: &[&str] = &["crt0.o", "crti.o", "crtn.o", "libc.a", "libm.a", "libpthread.a"];

/// The unwinder: separate in the comp set, or part of a complete libgcc_s.
pub(super) const UNWINDER: [&str; 2] = ["libgcc_eh.a", "libgcc_s.a"];

/// The directories of a release's sets.
const SETS: &[&str] = &["", "binary/sets", "amd64/binary/sets"];

/// The packed set with the libraries.
const COMP: &[(&str, &str)] = &[("comp.tar.xz", "--xz"), ("comp.tgz", "--gzip")];

/// Finds the directory with the libraries: `given` itself, its `usr/lib`, or
/// one that is unpacked from its sets into the cache.
pub fn find(given: &Path, cache: &Cache) -> Result<PathBuf> {
    let fail = |why: String| {
        Error::unavailable(Phase::Image, format!("--sysroot {}: {why}", given.display()))
    };
    let here = ["usr/lib", ""].map(|below| given.join(below));
    let directory = match here.iter().find(|directory| directory.join("libc.a").is_file()) {
        Some(directory) => directory.clone(),
        None => match packed(given) {
            Some((set, filter)) => unpack(&set, filter, cache)?,
            None if here[0].is_dir() => here[0].clone(),
            None => here[1].clone(),
        },
    };
    match missing(&directory) {
        Some(what) => Err(fail(format!(
            "{} lacks {what}; give usr/lib of NetBSD's comp set, a directory that \
             contains it, or one with comp.tar.xz or comp.tgz",
            directory.display()
        ))),
        None => fs::canonicalize(&directory).map_err(|error| fail(error.to_string())),
    }
}

fn missing(directory: &Path) -> Option<String> {
    let lacks = |file: &&str| !directory.join(file).is_file();
    let mut missing: Vec<_> = REQUIRED.iter().copied().filter(lacks).collect();
    if UNWINDER.iter().all(lacks) {
        missing.push(UNWINDER[0]);
    }
    (!missing.is_empty()).then(|| missing.join(", "))
}

fn packed(given: &Path) -> Option<(PathBuf, &'static str)> {
    SETS.iter()
        .flat_map(|below| COMP.iter().map(move |(name, filter)| (below, name, filter)))
        .map(|(below, name, filter)| (given.join(below).join(name), *filter))
        .find(|(path, _)| path.is_file())
}

/// Unpacks the libraries of a set, once for each content.
fn unpack(set: &Path, filter: &str, cache: &Cache) -> Result<PathBuf> {
    let name = set.file_name().unwrap_or_default().to_string_lossy();
    let digest = hash::file(set).or_unavailable(Phase::Image, set.display())?;
    let directory = cache.netbsd().join(format!("comp-{}", &digest[..12]));
    let _lock = cache.lock(Phase::Image, &format!("netbsd-comp-{}", &digest[..12]))?;
    let libraries = directory.join("usr/lib");
    if libraries.is_dir() {
        return Ok(libraries);
    }
    let step = Step::begin(format!("unpack {name}"));
    let scratch = cache::scratch(&cache.netbsd(), &format!("comp-{}", &digest[..12]))
        .or_unavailable(Phase::Image, cache.netbsd().display())?;
    let mut tar = command("tar");
    tar.args(["-x", "--no-same-owner", filter, "-f"]).arg(set).arg("-C").arg(scratch.path());
    // Skip other architectures' libraries in subdirectories.
    tar.args(["--wildcards", "--no-wildcards-match-slash", "./usr/lib/*.[ao]"]);
    read(&mut tar).map_err(|why| {
        Error::unavailable(Phase::Image, format!("cannot unpack {}: {why}", set.display()))
    })?;
    // Only an older version of this program can have left anything there.
    let _ = fs::remove_dir_all(&directory);
    fs::rename(scratch.keep(), &directory).or_unavailable(Phase::Image, directory.display())?;
    step.done();
    Ok(libraries)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    fn sysroot(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().expect("a directory");
        let libraries = directory.path().join("usr/lib");
        fs::create_dir_all(&libraries).expect("directories");
        for file in files {
            fs::write(libraries.join(file), "").expect("a file");
        }
        directory
    }

    fn whole() -> Vec<&'static str> {
        [REQUIRED, &["libgcc_eh.a"]].concat()
    }

    #[test]
    fn libraries_are_found_above_below_and_packed() {
        let scratch = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(Some(scratch.path())).expect("a cache");
        let sysroot = sysroot(&whole());
        let libraries = fs::canonicalize(sysroot.path().join("usr/lib")).expect("exists");
        for given in [sysroot.path(), &libraries] {
            assert_eq!(find(given, &cache).expect("whole"), libraries);
        }

        let release = tempfile::tempdir().expect("a directory");
        let sets = release.path().join("amd64/binary/sets");
        fs::create_dir_all(&sets).expect("directories");
        let tar = Command::new("tar")
            .args(["-c", "--gzip", "-f"])
            .arg(sets.join("comp.tgz"))
            .arg("-C")
            .arg(sysroot.path())
            .arg("./usr")
            .status();
        assert!(tar.expect("tar starts").success());
        for _ in 0..2 {
            let found = find(release.path(), &cache).expect("packed");
            assert!(found.starts_with(fs::canonicalize(cache.netbsd()).expect("exists")));
            assert_eq!(missing(&found), None);
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let scratch = tempfile::tempdir().expect("a directory");
        let cache = Cache::open(Some(scratch.path())).expect("a cache");
        let without = |name: &str| {
            let files: Vec<_> = whole().into_iter().filter(|file| *file != name).collect();
            find(sysroot(&files).path(), &cache).expect_err("incomplete").to_string()
        };
        for name in ["libc.a", "crt0.o", "libgcc_eh.a"] {
            let message = without(name);
            assert!(message.contains(&format!("lacks {name};")), "{message}");
            assert_eq!(message.lines().count(), 1);
        }
    }
}
