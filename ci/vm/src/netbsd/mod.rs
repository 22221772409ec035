//! NetBSD guests: uses the user's kernel and libraries, and builds everything else from them.

mod bench;
mod kernel;
mod link;
mod root;

pub use bench::{Bench, Recipe as BenchRecipe};
pub(crate) use kernel::check as check_kernel;
pub use link::TRIPLE;
pub use root::make as make_root;

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::host::{MKRESCUE, Need, require};
use crate::progress::Step;
use crate::run::{command, read};
use crate::toolchain::{Recipe, require_std};
use link::{FLAGS, linker};
use std::fs;
use std::io;
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

    /// Returns the linker for cargo, and the other flags. Cargo needs rustup's standard library.
    pub fn cargo(&self) -> Result<(String, String)> {
        require_std(TRIPLE)?;
        Ok((linker(&self.sysroot, &self.cache)?, FLAGS.join(" ")))
    }

    /// Returns how programs are built.
    pub fn recipe(&self) -> Result<Recipe> {
        require_std(TRIPLE)?;
        let linker = linker(&self.sysroot, &self.cache)?;
        let (flags, link) = (FLAGS.map(String::from).into(), vec![format!("-Clinker={linker}")]);
        Ok(Recipe { triple: TRIPLE.into(), flags, link })
    }
}

/// Returns the disc that boots this kernel, if QEMU cannot boot it directly.
/// Refuses files that are not a NetBSD kernel of this release.
pub fn disc(kernel: &Path, release: &str, cache: &Cache) -> Result<Option<PathBuf>> {
    match check_kernel(kernel, release)? {
        true => Ok(None),
        false => disc_of(kernel, cache).map(Some),
    }
}

/// GRUB uses the console, so that its errors are visible.
const CONFIG: &str = "\
serial --unit=0 --speed=9600
terminal_input serial
terminal_output serial
set timeout=0
menuentry netbsd {
    knetbsd /netbsd --serial=com0,9600 -r ld0a
}
";

/// Returns the disc for this kernel. Each kernel's disc is made once.
fn disc_of(kernel: &Path, cache: &Cache) -> Result<PathBuf> {
    let digest = hash::file(kernel).or_unavailable(Phase::Image, kernel.display())?;
    let name = format!("grub-{}.iso", &hash::bytes(format!("{CONFIG}{digest}").as_bytes())[..12]);
    let disc = cache.at("netbsd").join(&name);
    let _lock = cache.lock(Phase::Image, &format!("netbsd-{name}"))?;
    if disc.is_file() {
        return Ok(disc);
    }
    require(Need::Grub)?;
    let step = Step::begin("make a disc that boots the kernel");
    let scratch = cache::scratch(&cache.at("netbsd"), &name)
        .or_unavailable(Phase::Image, cache.at("netbsd").display())?;
    let half = make_disc(kernel, scratch.path())?;
    fs::rename(&half, &disc).or_unavailable(Phase::Image, disc.display())?;
    step.done();
    Ok(disc)
}

/// Makes the disc in this directory.
pub fn make_disc(kernel: &Path, directory: &Path) -> Result<PathBuf> {
    let (tree, disc) = (directory.join("tree"), directory.join("disc.iso"));
    stage(&tree, kernel).or_unavailable(Phase::Image, tree.display())?;
    // QEMU emulates no firmware but the BIOS.
    let mut mkrescue = command(MKRESCUE);
    read(mkrescue.arg("-o").arg(&disc).arg(&tree))
        .map_err(|why| Error::unavailable(Phase::Image, why))?;
    Ok(disc)
}

fn stage(tree: &Path, kernel: &Path) -> io::Result<()> {
    fs::create_dir_all(tree.join("boot/grub"))?;
    fs::copy(kernel, tree.join("netbsd"))?;
    fs::write(tree.join("boot/grub/grub.cfg"), CONFIG)
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
    match kernel::netbsd_version(bytes) {
        None => Some(
            "is not a program for NetBSD/amd64: it lacks NetBSD's ELF note; build it with the \
             variables that `kcov-vm env netbsd` prints",
        ),
        Some(_) if kernel::is_dynamic(bytes) => {
            Some("is dynamically linked, and a guest has no libraries")
        }
        Some(_) => None,
    }
}
