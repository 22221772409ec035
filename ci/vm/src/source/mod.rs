//! Kernel sources. Their identity needs the network at most once a day; the
//! tree is fetched only for a build.

mod apt;
mod package;

pub use package::{Package, raise};

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::progress::Step;
use crate::run::{command, read};
use crate::target::Target;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A kernel source that exists.
#[derive(Clone, Debug)]
pub enum Source {
    /// A distribution's source package.
    Package(Package),
    /// A user's tree and its manifest's digest.
    Tree(PathBuf, String),
}

impl Source {
    /// Takes the source of `--source`.
    pub fn given(path: &Path) -> Result<Self> {
        Self::local(path).map_err(|why| Error::usage(format!("--source {}: {why}", path.display())))
    }

    /// Returns a tree, or the reason why it is unusable.
    fn local(path: &Path) -> std::result::Result<Self, String> {
        let path = fs::canonicalize(path).map_err(|error| error.to_string())?;
        if !path.join("Kbuild").is_file() {
            return Err("is not a kernel source tree: it has no Kbuild".into());
        }
        if path.join(".config").exists() {
            return Err("contains a build; run `make mrproper` there first".into());
        }
        let manifest = manifest(&path).map_err(|error| error.to_string())?;
        Ok(Self::Tree(path, hash::bytes(manifest.as_bytes())))
    }

    /// Returns the target's own source.
    pub fn of(target: &Target, cache: &Cache) -> Result<Self> {
        if target.package.is_empty() {
            let why = "a netbsd target has no source: its kernel is the user's own".into();
            return Err(Error::NotGiven(why));
        }
        Package::find(&target.wanted, cache).map(Self::Package)
    }

    /// Returns the target's own source as far as it is known without a search.
    pub(crate) fn last_known(target: &Target, cache: &Cache) -> Option<Self> {
        Package::last_known(&target.wanted, cache).map(Self::Package)
    }

    /// Its name, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Package(package) => package.to_string(),
            Self::Tree(path, _) => path.display().to_string(),
        }
    }

    /// Its identity, for the key.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Package(package) => package.identity(),
            Self::Tree(_, digest) => format!("tree {digest}"),
        }
    }

    /// Returns the tree. Fetches and unpacks it if necessary.
    pub fn tree(&self, cache: &Cache) -> Result<PathBuf> {
        let package = match self {
            Self::Tree(path, _) => return Ok(path.clone()),
            Self::Package(package) => package,
        };
        let name = package.directory();
        let tree = cache.at("sources").join(&name);
        let _lock = cache.lock(Phase::Source, &name)?;
        if tree.is_dir() {
            cache::touch(&tree);
            return Ok(tree);
        }
        let scratch = cache::scratch(&cache.at("sources"), &name)
            .or_unavailable(Phase::Source, cache.at("sources").display())?;
        let deb = package.download(cache, scratch.path())?;
        let unpacked = unpack(package, &deb, scratch.path())?;
        fs::rename(&unpacked, &tree).or_unavailable(Phase::Source, tree.display())?;
        Ok(tree)
    }
}

/// Lists path, size and time of each file. This notices an edit, a hundred
/// times cheaper than reading the contents.
fn manifest(root: &Path) -> io::Result<String> {
    let (mut lines, mut pending) = (Vec::new(), vec![root.to_path_buf()]);
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory)? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.is_dir() {
                if entry.file_name() != ".git" {
                    pending.push(entry.path());
                }
                continue;
            }
            let path = entry.path();
            let path = path.strip_prefix(root).unwrap_or(&path);
            let time = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            lines.push(format!("{} {} {time:?}\n", path.display(), metadata.len()));
        }
    }
    lines.sort();
    Ok(lines.concat())
}

/// Unpacks the tarball inside a `linux-source` package. It has one top directory.
fn unpack(package: &Package, deb: &Path, scratch: &Path) -> Result<PathBuf> {
    let (files, name) = (scratch.join("package"), format!("{}.tar.xz", package.name));
    let fail = |why| Error::unavailable(Phase::Source, format!("cannot unpack {name}: {why}"));
    read(command("dpkg-deb").arg("-x").arg(deb).arg(&files)).map_err(fail)?;
    let tree = scratch.join("tree");
    fs::create_dir(&tree).map_err(|error| fail(error.to_string()))?;
    let step = Step::begin(format!("unpack {name}"));
    let mut tar = command("tar");
    tar.args(["-x", "--no-same-owner", "--strip-components=1", "-C"]).arg(&tree);
    tar.arg("-f").arg(files.join("usr/src").join(&name));
    read(&mut tar).map_err(fail)?;
    if !tree.join("Kbuild").is_file() {
        return Err(fail("it contains no kernel source: Kbuild is missing".into()));
    }
    step.done();
    Ok(tree)
}

/// Copies `tree` to `directory` and applies patches to the copy. Files that no patch changes are hard
/// links.
pub fn patched(tree: &Path, patches: &[PathBuf], directory: &Path) -> Result<()> {
    let copy = |how| read(command("cp").arg(how).arg(tree).arg(directory));
    // Hard links to a user's tree on another file system are impossible.
    copy("-al")
        .or_else(|_| {
            let _ = fs::remove_dir_all(directory);
            copy("-a")
        })
        .map_err(|why| Error::unavailable(Phase::Source, why))?;
    for patch in patches {
        // It writes new files, so the other tree's stay.
        let mut command = command("patch");
        command.args(["-p1", "--batch", "--forward", "--no-backup-if-mismatch"]);
        command.arg("-d").arg(directory).arg("-i").arg(patch);
        let output = command.output().or_unavailable(Phase::Source, "patch")?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout).into_owned();
            let line = said.lines().find(|line| line.contains("FAILED")).unwrap_or("failed");
            let message = format!("{} does not apply: {line}", patch.display());
            return Err(Error::unavailable(Phase::Source, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::STATUS_UNAVAILABLE;

    #[test]
    fn a_manifest_notices_edits_only() {
        let tree = tempfile::tempdir().expect("a directory");
        fs::create_dir_all(tree.path().join("a/.git")).expect("directories");
        fs::write(tree.path().join("a/f"), "1").expect("a file");
        let before = manifest(tree.path()).expect("readable");
        assert!(before.starts_with("a/f 1 "), "{before}");
        fs::write(tree.path().join("a/.git/x"), "1").expect("a file");
        assert_eq!(manifest(tree.path()).expect("readable"), before);
        fs::write(tree.path().join("a/f"), "22").expect("a file");
        assert_ne!(manifest(tree.path()).expect("readable"), before);
    }

    #[test]
    fn the_pristine_tree_stays_so() {
        let root = tempfile::tempdir().expect("a directory");
        let tree = root.path().join("tree");
        fs::create_dir(&tree).expect("a directory");
        fs::write(tree.join("f"), "one\n").expect("a file");
        fs::write(tree.join("g"), "same\n").expect("a file");
        let patch = root.path().join("p");
        fs::write(&patch, "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-one\n+two\n").expect("a file");
        let copy = root.path().join("copy");
        patched(&tree, std::slice::from_ref(&patch), &copy).expect("applies");
        assert_eq!(fs::read_to_string(copy.join("f")).expect("a file"), "two\n");
        assert_eq!(fs::read_to_string(tree.join("f")).expect("a file"), "one\n");
        let again = root.path().join("again");
        let why = patched(&copy, &[patch], &again).expect_err("applied before");
        assert_eq!(why.status(), STATUS_UNAVAILABLE);
        assert!(why.to_string().contains("does not apply"), "{why}");
    }
}
