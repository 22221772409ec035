//! Unpacks downloads into a tree.

use super::Package;
use crate::error::{Error, Phase, Result};
use crate::progress::Step;
use crate::run::{command, read};
use std::fs;
use std::path::{Path, PathBuf};

/// Unpacks the tarball inside a `linux-source` package. It has one top directory.
pub fn unpack(package: &Package, deb: &Path, scratch: &Path) -> Result<PathBuf> {
    let (files, name) = (scratch.join("package"), format!("{}.tar.xz", package.name));
    let fail = |why| Error::unavailable(Phase::Source, format!("cannot unpack {name}: {why}"));
    read(command("dpkg-deb").arg("-x").arg(deb).arg(&files)).map_err(fail)?;
    let tree = scratch.join("tree");
    fs::create_dir(&tree).map_err(|error| fail(error.to_string()))?;
    let step = Step::begin(format!("unpack {name}"));
    let mut tar = command("tar");
    tar.args(["-x", "--no-same-owner", "--strip-components=1", "-C"]).arg(&tree);
    tar.arg("-f").arg(files.join("usr/src").join(&name));
    read(&mut tar).map_err(fail)?;
    if !tree.join("Kbuild").is_file() {
        return Err(fail("it contains no kernel source: Kbuild is missing".into()));
    }
    step.done();
    Ok(tree)
}
