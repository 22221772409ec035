//! A disc that loads kernels which QEMU cannot start by itself.

use crate::cache::{self, Cache};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::host::{Need, require};
use crate::progress::Step;
use crate::run::{command, read};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What makes it.
pub const MKRESCUE: &str = "grub-mkrescue";

/// GRUB talks on the console, so that it is known why it could not go on.
const CONFIG: &str = "\
serial --unit=0 --speed=9600
terminal_input serial
terminal_output serial
set timeout=0
menuentry netbsd {
    knetbsd /netbsd --serial=com0,9600 -r ld0a
}
";

/// The disc for this kernel, made once for each content.
pub fn disc(kernel: &Path, cache: &Cache) -> Result<PathBuf> {
    let digest = hash::file(kernel).or_unavailable(Phase::Image, kernel.display())?;
    let name = format!("grub-{}.iso", &hash::bytes(format!("{CONFIG}{digest}").as_bytes())[..12]);
    let disc = cache.netbsd().join(&name);
    let _lock = cache.lock(Phase::Image, &format!("netbsd-{name}"))?;
    if disc.is_file() {
        return Ok(disc);
    }
    require(Need::Grub)?;
    let step = Step::begin("make a disc that boots the kernel", None);
    let scratch = cache::scratch(&cache.netbsd(), &name)
        .or_unavailable(Phase::Image, cache.netbsd().display())?;
    let (tree, half) = (scratch.path().join("tree"), scratch.path().join("half"));
    stage(&tree, kernel).or_unavailable(Phase::Image, tree.display())?;
    // No firmware but the BIOS is emulated.
    let mut mkrescue = command(MKRESCUE);
    read(mkrescue.arg("-o").arg(&half).arg(&tree))
        .map_err(|why| Error::unavailable(Phase::Image, why))?;
    fs::rename(&half, &disc).or_unavailable(Phase::Image, disc.display())?;
    step.done();
    Ok(disc)
}

fn stage(tree: &Path, kernel: &Path) -> io::Result<()> {
    fs::create_dir_all(tree.join("boot/grub"))?;
    fs::copy(kernel, tree.join("netbsd"))?;
    fs::write(tree.join("boot/grub/grub.cfg"), CONFIG)
}
