//! NetBSD guests: uses the user's kernel and libraries, and builds everything else from them.

mod bench;
mod elf;
mod grub;
mod kernel;
mod link;
mod root;
mod sysroot;

pub use bench::{Bench, Recipe as BenchRecipe};
pub use grub::make as make_disc;
pub(crate) use kernel::check as check_kernel;
pub use link::TRIPLE;
pub use root::make as make_root;

use crate::cache::Cache;
use crate::error::{Error, Phase, Result, Unavailable};
use crate::run::{command, read};
use crate::toolchain::{Recipe, require_std};
use link::{FLAGS, linker, try_empty};
use std::fs;
use std::path::{Path, PathBuf};

/// The machine's name in uname(2).
pub(crate) const MACHINE: &str = "amd64";

/// The user's libraries and the cache for files made from them.
#[derive(Clone, Debug)]
pub struct Libraries {
    /// The directory that `--sysroot` named.
    pub sysroot: PathBuf,
    /// The cache.
    pub cache: Cache,
}

impl Libraries {
    /// Takes the directory that the user named with the option or variable `by`. It must exist.
    pub fn given(path: &Path, by: &str, cache: &Cache) -> Result<Self> {
        let sysroot =
            fs::canonicalize(path).ok().filter(|path| path.is_dir()).ok_or_else(|| {
                Error::usage(format!("{by} {}: there is no such directory", path.display()))
            })?;
        Ok(Self { sysroot, cache: cache.clone() })
    }

    /// Refuses libraries that no program can be linked against.
    pub fn check(&self) -> Result<()> {
        let linker = linker(&self.sysroot, &self.cache)?;
        // Without rustup's standard library this would take as long as compiling the suite.
        if require_std(TRIPLE).is_ok() { try_empty(&linker) } else { Ok(()) }
    }

    /// Tells the user how to build a program.
    pub fn advice(&self) -> String {
        let sysroot = self.sysroot.display();
        format!("build it with the variables that `kcov-vm env netbsd --sysroot {sysroot}` prints")
    }

    /// Returns the linker for cargo, and the other flags. Cargo needs rustup's standard library.
    pub fn cargo(&self) -> Result<(String, String)> {
        require_std(TRIPLE)?;
        Ok((linker(&self.sysroot, &self.cache)?, FLAGS.join(" ")))
    }

    /// Returns how programs are built.
    pub fn recipe(&self) -> Result<Recipe> {
        let linker = linker(&self.sysroot, &self.cache)?;
        let compiles_std = match require_std(TRIPLE) {
            Ok(()) => false,
            Err(_) if has_std_sources() => true,
            Err(Error::Unavailable(Unavailable { message, .. })) => {
                let message = format!(
                    "{message}; run `rustup target add {TRIPLE}`, or `rustup component add \
                     rust-src` to compile the library"
                );
                return Err(Unavailable::new(Phase::Image, message).into());
            }
            Err(error) => return Err(error),
        };
        let (flags, link) = (FLAGS.map(String::from).into(), vec![format!("-Clinker={linker}")]);
        Ok(Recipe { triple: TRIPLE.into(), flags, link, compiles_std })
    }
}

fn has_std_sources() -> bool {
    let sysroot = read(command("rustc").args(["--print", "sysroot"])).unwrap_or_default();
    Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library/std").is_dir()
}

/// Returns the disc that boots this kernel, if QEMU cannot boot it directly.
/// Refuses files that are not a NetBSD kernel of this release.
pub fn disc(kernel: &Path, release: &str, cache: &Cache) -> Result<Option<PathBuf>> {
    match check_kernel(kernel, release)? {
        true => Ok(None),
        false => grub::disc(kernel, cache).map(Some),
    }
}

/// Names the missing options and where to get their files.
pub fn given(kernel: bool, sysroot: bool) -> Result<()> {
    let kernel = (!kernel).then_some("--kernel FILE (a NetBSD/amd64 kernel with `options KCOV`)");
    let sysroot = (!sysroot).then_some("--sysroot DIR (usr/lib of the release's comp set)");
    let missing: Vec<_> = [kernel, sysroot].into_iter().flatten().collect();
    if missing.is_empty() {
        return Ok(());
    }
    let missing = missing.join(" and ");
    Err(Error::NotGiven(format!("needs {missing}; see docs/src/netbsd-lane.md")))
}

/// The file systems that init mounts: type, path, and whether it is optional.
pub(crate) const MOUNTS: &[(&str, &str, &str, bool)] = &[("tmpfs", "/tmp", "", false)];

/// Returns the reason why a guest cannot run a program.
pub(crate) fn unfit(bytes: &[u8]) -> Option<&'static str> {
    match elf::netbsd_version(bytes) {
        None => Some("is not a program for NetBSD/amd64: it lacks NetBSD's ELF note"),
        Some(_) if elf::is_dynamic(bytes) => {
            Some("is dynamically linked, and a guest has no libraries")
        }
        Some(_) => None,
    }
}
