//! Makes boot discs for kernels that QEMU cannot start directly.

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::host::{MKRESCUE, Need, require};
use crate::progress::Step;
use crate::run::{command, read};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

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
pub fn disc(kernel: &Path, cache: &Cache) -> Result<PathBuf> {
    let digest = hash::file(kernel).or_unavailable(Phase::Image, kernel.display())?;
    let name = format!("grub-{}.iso", &hash::bytes(format!("{CONFIG}{digest}").as_bytes())[..12]);
    let disc = cache.netbsd().join(&name);
    let _lock = cache.lock(Phase::Image, &format!("netbsd-{name}"))?;
    if disc.is_file() {
        return Ok(disc);
    }
    require(Need::Grub)?;
    let step = Step::begin("make a disc that boots the kernel");
    let scratch = cache::scratch(&cache.netbsd(), &name)
        .or_unavailable(Phase::Image, cache.netbsd().display())?;
    let half = make(kernel, scratch.path())?;
    fs::rename(&half, &disc).or_unavailable(Phase::Image, disc.display())?;
    step.done();
    Ok(disc)
}

/// Makes the disc in this directory.
pub fn make(kernel: &Path, directory: &Path) -> Result<PathBuf> {
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
