//! The directory that keeps sources, kernels and logs between runs.

use crate::error::{Error, OrUnavailable as _, Phase, Result};
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// The cache directory.
#[derive(Clone, Debug)]
pub struct Cache {
    root: PathBuf,
}

/// Held while something in the cache is made; released when dropped, or when
/// the process dies.
#[derive(Debug)]
pub struct Lock(#[allow(dead_code, reason = "held for its file lock")] File);

impl Cache {
    /// Opens the cache that the user named, or the usual one.
    pub fn open(given: Option<&Path>) -> Result<Self> {
        let usual = || {
            let var = |name| std::env::var_os(name).filter(|value| !value.is_empty());
            let base = var("XDG_CACHE_HOME").map(PathBuf::from);
            base.or_else(|| Some(Path::new(&var("HOME")?).join(".cache")))
                .map(|base| base.join("kcov-vm"))
        };
        let root = given.map(Path::to_path_buf).or_else(usual).ok_or_else(|| {
            Error::usage("HOME is not set: say where to keep kernels with --cache DIR")
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

    /// Where kernel sources are kept.
    pub fn sources(&self) -> PathBuf {
        self.root.join("sources")
    }

    /// Where built kernels are kept.
    pub fn kernels(&self) -> PathBuf {
        self.root.join("kernels")
    }

    /// Where compilers are unpacked that the machine does not have.
    pub fn compilers(&self) -> PathBuf {
        self.root.join("compilers")
    }

    /// Where trees are kept that are built again and again with one file altered.
    pub fn benches(&self) -> PathBuf {
        self.root.join("benches")
    }

    /// Where the logs of runs are kept.
    pub fn runs(&self) -> PathBuf {
        self.root.join("runs")
    }

    /// Where guests' programs are kept.
    pub fn programs(&self) -> PathBuf {
        self.root.join("programs")
    }

    /// What is made from NetBSD kernels and libraries of the user's.
    pub fn netbsd(&self) -> PathBuf {
        self.root.join("netbsd")
    }

    /// Where apt keeps what it knows of suites that the machine does not list.
    pub fn apt(&self, suite: &str) -> PathBuf {
        self.root.join("apt").join(suite)
    }

    /// The file that remembers whether guests boot under KVM.
    pub fn kvm_probe(&self) -> PathBuf {
        self.root.join("kvm-probe")
    }

    /// Waits until nobody else makes the same thing.
    pub fn lock(&self, phase: Phase, name: &str) -> Result<Lock> {
        let path = self.root.join("locks").join(name);
        let options = OpenOptions::new().create(true).truncate(false).write(true).open(&path);
        let file = options.or_unavailable(phase, path.display())?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(Lock(file)),
            Err(Errno::WOULDBLOCK) => eprintln!("waiting for another kcov-vm to make {name} ..."),
            Err(error) => return Err(error).or_unavailable(phase, path.display()),
        }
        flock(&file, FlockOperation::LockExclusive).or_unavailable(phase, path.display())?;
        Ok(Lock(file))
    }
}

/// Makes the directories and proves that they can be written to.
fn prepare(root: &Path) -> io::Result<PathBuf> {
    for directory in
        ["apt", "benches", "compilers", "kernels", "locks", "netbsd", "programs", "runs", "sources"]
    {
        fs::create_dir_all(root.join(directory))?;
    }
    // Commands are run in other directories.
    let root = fs::canonicalize(root)?;
    tempfile::tempfile_in(&root)?;
    Ok(root)
}
