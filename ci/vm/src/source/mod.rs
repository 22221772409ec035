//! Kernel sources. Their identity needs the network at most once a day; the
//! tree is fetched only for a build.

mod apt;
mod package;
mod patch;
mod unpack;

pub use package::{Package, raise};
pub use patch::patched;
use unpack::unpack;

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
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
        let tree = cache.sources().join(&name);
        let _lock = cache.lock(Phase::Source, &name)?;
        if tree.is_dir() {
            cache::touch(&tree);
            return Ok(tree);
        }
        let scratch = cache::scratch(&cache.sources(), &name)
            .or_unavailable(Phase::Source, cache.sources().display())?;
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

#[cfg(test)]
mod tests {
    use super::*;

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
}
