//! NetBSD guests: a kernel and libraries that the user gave, and all that is
//! made from them.

mod elf;
mod grub;
mod kernel;
mod link;
mod root;
mod sysroot;

pub(crate) use grub::MKRESCUE;
pub(crate) use link::TRIPLE;
pub(crate) use root::{MAKEFS, make as make_root};

use crate::cache::Cache;
use crate::error::{Error, Phase, Result, Unavailable};
use crate::programs::{self, Program, Std};
use crate::run::{command, read};
use kernel::Entry;
use link::Linker;
use std::fs;
use std::path::{Path, PathBuf};

/// The libraries that the user gave, and where to keep what is made from them.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// What `--sysroot` named.
    pub sysroot: PathBuf,
    /// Where to keep it.
    pub cache: Cache,
}

impl Libraries {
    /// What the user named by this option or variable. It has to exist.
    pub fn given(path: &Path, by: &str, cache: &Cache) -> Result<Self> {
        let sysroot =
            fs::canonicalize(path).ok().filter(|path| path.is_dir()).ok_or_else(|| {
                Error::usage(format!("{by} {}: there is no such directory", path.display()))
            })?;
        Ok(Self { sysroot, cache: cache.clone() })
    }

    /// Refuses what no program can be linked against.
    pub fn check(&self) -> Result<()> {
        Linker::new(&self.sysroot, &self.cache).map(drop)
    }

    /// How to build a program of one's own, if the libraries are in order.
    pub fn advice(&self) -> Option<String> {
        Linker::new(&self.sysroot, &self.cache).ok().map(|linker| linker.advice())
    }

    /// Builds a program of the workspace; where it lies.
    pub fn build(&self, program: Program) -> Result<PathBuf> {
        let linker = Linker::new(&self.sysroot, &self.cache)?;
        let std = match programs::require_std(TRIPLE) {
            Ok(()) => Std::Installed,
            Err(_) if has_std_sources() => Std::Compiled,
            Err(Error::Unavailable(Unavailable { message, .. })) => {
                let message = format!(
                    "{message}; run `rustup target add {TRIPLE}`, or have it compiled: `rustup \
                     component add rust-src`"
                );
                return Err(Unavailable::new(Phase::Image, message).into());
            }
            Err(error) => return Err(error),
        };
        programs::compile(program, TRIPLE, &linker.flags(), std)
    }
}

fn has_std_sources() -> bool {
    let sysroot = read(command("rustc").args(["--print", "sysroot"])).unwrap_or_default();
    Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std").is_dir()
}

/// Refuses what is no NetBSD kernel of this release.
pub(crate) fn check_kernel(kernel: &Path, release: &str) -> Result<()> {
    kernel::entry(kernel, release).map(drop)
}

/// The disc that boots this kernel, if QEMU cannot boot it by itself. Refuses
/// what is no NetBSD kernel of this release.
pub(crate) fn disc(kernel: &Path, release: &str, cache: &Cache) -> Result<Option<PathBuf>> {
    match kernel::entry(kernel, release)? {
        Entry::Pvh => Ok(None),
        Entry::Grub => grub::disc(kernel, cache).map(Some),
    }
}

/// Says how to get what was not given.
pub(crate) fn given(kernel: bool, sysroot: bool) -> Result<()> {
    let kernel = (!kernel).then_some("--kernel FILE (a NetBSD/amd64 kernel with `options KCOV`)");
    let sysroot = (!sysroot).then_some("--sysroot DIR (usr/lib of the release's comp set)");
    let missing: Vec<_> = [kernel, sysroot].into_iter().flatten().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    Err(Error::NotGiven(format!("needs {missing}; docs/src/netbsd-lane.md says how to get them")))
}

/// The file systems that a program finds mounted: type, place, and whether it
/// can do without. It hides the job file.
pub(crate) const MOUNTS: &[(&str, &str, bool)] = &[("tmpfs", "/tmp", false)];

/// Says why a guest could not run a program, if it could not.
pub(crate) fn unfit(bytes: &[u8]) -> Option<&'static str> {
    match elf::netbsd_version(bytes) {
        None => Some("is not a program for NetBSD/amd64: it lacks the note that says so"),
        Some(_) if elf::is_dynamic(bytes) => {
            Some("is dynamically linked and a guest has no libraries")
        }
        Some(_) => None,
    }
}
