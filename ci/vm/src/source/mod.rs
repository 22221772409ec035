//! Kernel sources. Their identity needs the network at most once a day; the
//! tree is fetched only for a build.

mod apt;
mod package;
mod patch;
mod raise;
mod unpack;

pub use package::Package;
pub use patch::patched;
pub use raise::raise;

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::host::{self, Need};
use crate::progress::Step;
use crate::run::{command, read};
use crate::target::{NO_TARBALL, Origin, Target, compression};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// A kernel source that exists.
#[derive(Clone, Debug)]
pub enum Source {
    /// A distribution's source package.
    Package(Package),
    /// A user's tarball and its digest.
    Tarball(PathBuf, String),
    /// The address of a tarball and its digest.
    Download(String, String),
    /// A user's tree and its manifest's digest.
    Tree(PathBuf, String),
}

impl Source {
    /// Takes the source of `--source`.
    pub fn given(path: &Path) -> Result<Self> {
        Self::local(path).map_err(|why| Error::usage(format!("--source {}: {why}", path.display())))
    }

    /// Returns a tree or a tarball of this machine, or the reason why it is unusable.
    fn local(path: &Path) -> std::result::Result<Self, String> {
        let path = fs::canonicalize(path).map_err(|error| error.to_string())?;
        if !path.is_dir() {
            if compression(&path).is_none() {
                return Err(NO_TARBALL.into());
            }
            let digest = hash::file(&path).map_err(|error| error.to_string())?;
            return Ok(Self::Tarball(path, digest));
        }
        if !path.join("Kbuild").is_file() {
            return Err("is not a kernel source tree: it has no Kbuild".into());
        }
        if path.join(".config").exists() {
            return Err("contains a build; run `make mrproper` there first".into());
        }
        let manifest = manifest(&path).map_err(|error| error.to_string())?;
        Ok(Self::Tree(path, hash::bytes(manifest.as_bytes())))
    }

    /// Returns the target's own source. `refresh` searches for its package even if today's search
    /// is done.
    pub fn of(target: &Target, cache: &Cache, refresh: bool) -> Result<Self> {
        match &target.source {
            Some(origin) => Self::from(origin).map_err(|why| {
                Error::unavailable(Phase::Source, format!("{}: {why}", target.name))
            }),
            None if target.package.is_empty() => {
                let why = "a netbsd target has no source: its kernel is the user's own".into();
                Err(Error::NotGiven(why))
            }
            None => Package::find(&target.wanted, cache, refresh).map(Self::Package),
        }
    }

    /// Returns the target's own source as far as it is known without a search.
    pub(crate) fn last_known(target: &Target, cache: &Cache) -> Option<Self> {
        match &target.source {
            Some(origin) => Self::from(origin).ok(),
            None => Package::last_known(&target.wanted, cache).map(Self::Package),
        }
    }

    fn from(origin: &Origin) -> std::result::Result<Self, String> {
        match origin {
            Origin::Download { url, sha256 } => {
                Ok(Self::Download(url.clone(), sha256.to_ascii_lowercase()))
            }
            Origin::Local { path } => {
                Self::local(path).map_err(|why| format!("{}: {why}", path.display()))
            }
        }
    }

    /// Its name, for people.
    pub fn describe(&self) -> String {
        match self {
            Self::Package(package) => package.to_string(),
            Self::Tarball(path, _) | Self::Tree(path, _) => path.display().to_string(),
            Self::Download(url, _) => url.clone(),
        }
    }

    /// Its identity, for the key.
    pub(crate) fn identity(&self) -> String {
        match self {
            Self::Package(package) => package.identity(),
            Self::Tarball(_, digest) | Self::Download(_, digest) => format!("tarball {digest}"),
            Self::Tree(_, digest) => format!("tree {digest}"),
        }
    }

    /// The name of its directory in the cache, unless it is a user's tree.
    pub fn directory(&self) -> Option<String> {
        match self {
            Self::Tree(..) => None,
            Self::Tarball(_, digest) | Self::Download(_, digest) => {
                Some(format!("tarball-{}", &digest[..12]))
            }
            Self::Package(package) => Some(package.directory()),
        }
    }

    /// Returns the tree. Fetches and unpacks it if necessary.
    pub fn tree(&self, cache: &Cache) -> Result<PathBuf> {
        let name = match (self, self.directory()) {
            (Self::Tree(path, _), _) => return Ok(path.clone()),
            (_, name) => name.unwrap_or_default(),
        };
        let tree = cache.sources().join(&name);
        let _lock = cache.lock(Phase::Source, &name)?;
        if tree.is_dir() {
            return Ok(tree);
        }
        let scratch = cache::scratch(&cache.sources(), &name)
            .or_unavailable(Phase::Source, cache.sources().display())?;
        let unpacked = match self {
            Self::Package(package) => {
                let deb = package.download(cache, scratch.path())?;
                unpack::package(package, &deb, scratch.path())?
            }
            Self::Download(url, digest) => {
                unpack::tarball(&download(url, digest, scratch.path())?, scratch.path())?
            }
            Self::Tarball(path, _) | Self::Tree(path, _) => unpack::tarball(path, scratch.path())?,
        };
        fs::rename(&unpacked, &tree).or_unavailable(Phase::Source, tree.display())?;
        Ok(tree)
    }
}

/// Downloads a tarball into a directory and compares its digest.
fn download(url: &str, digest: &str, directory: &Path) -> Result<PathBuf> {
    host::require(Need::Download)?;
    let name = Path::new(url).file_name().unwrap_or_default();
    let file = directory.join(name);
    let step = Step::begin(format!("download {url}"), None);
    let mut curl = command("curl");
    curl.args(["--fail", "--silent", "--show-error", "--location", "--output"]).arg(&file).arg(url);
    read(&mut curl).map_err(|why| Error::unavailable(Phase::Source, why))?;
    step.done();
    let found = hash::file(&file).or_unavailable(Phase::Source, file.display())?;
    if found == digest {
        return Ok(file);
    }
    let why = format!("{url} has the digest {found}, but targets.toml has {digest}");
    Err(Error::unavailable(Phase::Source, why))
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
    fn a_download_has_the_expected_digest() {
        let place = tempfile::tempdir().expect("a directory");
        let tarball = place.path().join("linux.tar");
        let tree = place.path().join("linux");
        fs::create_dir(&tree).expect("a directory");
        fs::write(tree.join("Kbuild"), "# no kernel\n").expect("a file");
        let mut tar = command("tar");
        tar.arg("-C").arg(place.path()).arg("-cf").arg(&tarball).arg("linux");
        read(&mut tar).expect("a tarball");
        let cache = Cache::open(Some(&place.path().join("cache"))).expect("a cache");
        let url = format!("file://{}", tarball.display());
        let digest = hash::file(&tarball).expect("a digest");
        let wrong = Source::Download(url.clone(), "0".repeat(64));
        let why = wrong.tree(&cache).expect_err("another digest").to_string();
        assert!(why.contains(&digest), "{why}");
        let unpacked = Source::Download(url, digest).tree(&cache).expect("a tree");
        assert!(unpacked.join("Kbuild").is_file());
    }

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
