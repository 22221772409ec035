//! Unpacks downloads into a tree.

use super::Package;
use crate::error::{Error, Phase, Result};
use crate::progress::Step;
use crate::run::{command, read};
use std::fs;
use std::path::{Path, PathBuf};

/// The message for an unknown file type.
pub const NO_TARBALL: &str = "is not a tarball by its name (.tar, .tar.xz, .tar.gz, …)";

/// Whether a file has the name of a tarball.
pub fn is_tarball(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".tar") || name.ends_with(".tgz") || name.contains(".tar.")
}

/// Unpacks the tarball inside a `linux-source` package.
pub fn package(package: &Package, deb: &Path, scratch: &Path) -> Result<PathBuf> {
    let files = scratch.join("package");
    read(command("dpkg-deb").arg("-x").arg(deb).arg(&files))
        .map_err(|why| Error::unavailable(Phase::Source, why))?;
    let inner = files.join("usr/src").join(format!("{}.tar.xz", package.name));
    tarball(&inner, scratch)
}

/// Unpacks a tarball that has one top directory.
pub fn tarball(path: &Path, scratch: &Path) -> Result<PathBuf> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let fail = |why: String| {
        Error::unavailable(Phase::Source, format!("cannot unpack {}: {why}", path.display()))
    };
    let tree = scratch.join("tree");
    fs::create_dir(&tree).map_err(|error| fail(error.to_string()))?;
    let step = Step::begin(format!("unpack {name}"));
    let mut tar = command("tar");
    tar.args(["-x", "--no-same-owner", "--strip-components=1", "-C"])
        .arg(&tree)
        .arg("-f")
        .arg(path);
    read(&mut tar).map_err(fail)?;
    if !tree.join("Kbuild").is_file() {
        return Err(fail("it contains no kernel source: Kbuild is missing".into()));
    }
    step.done();
    Ok(tree)
}
