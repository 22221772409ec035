//! The cache directory: sources, kernels and logs, kept between runs.

use crate::error::{Error, OrUnavailable as _, Phase, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use tempfile::TempDir;

/// Its directories. `benches` has trees that are rebuilt for each alteration, `netbsd` files made from
/// the user's kernels and libraries, `programs` those of guests, and `runs` logs.
const DIRECTORIES: [&str; 8] =
    ["apt", "benches", "kernels", "locks", "netbsd", "programs", "runs", "sources"];

/// The cache directory.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Held while something in the cache is being made. Dropping it, or the end of the process,
/// releases it.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "held for its file lock")] File);

impl Cache {
    /// Opens the given cache, or the default one.
    pub fn open(given: Option<&Path>) -> Result<Self> {
        let usual = || {
            let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
            let base = var("XDG_CACHE_HOME").map(PathBuf::from);
            base.or_else(|| Some(Path::new(&var("HOME")?).join(".cache")))
                .map(|base| base.join("kcov-vm"))
        };
        let root = given.map(Path::to_path_buf).or_else(usual).ok_or_else(|| {
            Error::usage("HOME is not set; name a cache directory with --cache DIR")
        })?;
        let root = prepare(&root).map_err(|error| {
            Error::usage(format!(
                "cannot use {} as the cache: {error}; name a directory you may write to with \
                 --cache DIR",
                root.display()
            ))
        })?;
        Ok(Self { root })
    }

    /// One of the directories.
    pub fn at(&self, directory: &str) -> PathBuf {
        self.root.join(directory)
    }

    /// apt's private directory for a suite that the machine does not list.
    pub fn apt(&self, suite: &str) -> PathBuf {
        self.root.join("apt").join(suite)
    }

    /// The cache directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    fn lock_file(&self, name: &str) -> io::Result<File> {
        let path = self.root.join("locks").join(name);
        OpenOptions::new().create(true).truncate(false).write(true).open(path)
    }

    /// Takes the lock, waiting for any other holder.
    pub fn lock(&self, phase: Phase, name: &str) -> Result<Lock> {
        let file = self.lock_file(name).or_unavailable(phase, name)?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Err(Errno::WOULDBLOCK) => {
                eprintln!("waiting for another kcov-vm with {name} ...");
                flock(&file, FlockOperation::LockExclusive)
            }
            taken => taken,
        }
        .or_unavailable(phase, name)?;
        Ok(Lock(file))
    }
}

/// Makes an empty temporary directory for the holder of the lock `name`. Removes one that a killed
/// process left.
pub fn scratch(parent: &Path, name: &str) -> io::Result<TempDir> {
    let name = format!(".unpack-{name}");
    match fs::remove_dir_all(parent.join(&name)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    tempfile::Builder::new().prefix(&name).rand_bytes(0).tempdir_in(parent)
}

/// The end of the name of a file that is being written.
pub const PARTIAL: &str = ".partial";

/// Writes the file atomically: another thread or runner may do the same.
pub fn keep(path: &Path, content: impl AsRef<[u8]>) -> io::Result<()> {
    let place = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new();
    // The user's mask applies.
    file.suffix(PARTIAL).permissions(Permissions::from_mode(0o666));
    let mut file = file.tempfile_in(place)?;
    file.write_all(content.as_ref())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Notes the use of a directory, so that `find -mtime` finds the unused ones.
pub fn touch(directory: &Path) {
    // A failure only makes it look older.
    let _ = File::open(directory).and_then(|file| file.set_modified(SystemTime::now()));
}

/// The file that marks a directory of reproducible files, such as cargo's `target`.
pub const MARK: &str = "CACHEDIR.TAG";

/// The content of a mark.
const SIGNATURE: &str = "Signature: 8a477f597d28d172789f06886806bc55\n";

/// Makes the directories and checks that they are writable. Marks them, because a cache may be in the
/// directory of a crate, which guests get without marked directories.
fn prepare(root: &Path) -> io::Result<PathBuf> {
    for directory in DIRECTORIES {
        let directory = root.join(directory);
        fs::create_dir_all(&directory)?;
        let mark = directory.join(MARK);
        if !mark.exists() {
            fs::write(mark, SIGNATURE)?;
        }
    }
    // Commands run in other directories, so the path must be absolute.
    let root = fs::canonicalize(root)?;
    tempfile::tempfile_in(&root)?;
    Ok(root)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_run_left_is_removed_by_the_next() {
        let root = tempfile::tempdir().expect("a directory");
        let first = scratch(root.path(), "linux-1").expect("made").keep();
        fs::write(first.join("half"), "").expect("a file");
        let second = scratch(root.path(), "linux-1").expect("made");
        assert_eq!(second.path(), first);
        assert_eq!(fs::read_dir(&first).expect("there").count(), 0);
        drop(second);
        assert!(!first.exists());
    }
}
