//! Unpacks downloads into a tree.

use super::Package;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::progress::Step;
use crate::run::{command, ends_with_us, not_started, read};
use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::Stdio;

/// The message for an unknown file type.
pub const NO_TARBALL: &str = "is not a tarball by its name (.tar, .tar.xz, .tar.gz, …)";

/// The tar option for a file's compression. tar cannot detect it in a pipe.
pub fn compression(path: &Path) -> Option<&'static str> {
    let name = path.file_name()?.to_str()?;
    [
        (".tar", "--no-auto-compress"),
        (".tar.xz", "--xz"),
        (".tar.gz", "--gzip"),
        (".tgz", "--gzip"),
        (".tar.bz2", "--bzip2"),
        (".tar.zst", "--zstd"),
    ]
    .into_iter()
    .find_map(|(suffix, option)| name.ends_with(suffix).then_some(option))
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
    let option = compression(path).ok_or_else(|| fail(NO_TARBALL.into()))?;
    let tree = scratch.join("tree");
    fs::create_dir(&tree).map_err(|error| fail(error.to_string()))?;
    let mut input = File::open(path).map_err(|error| fail(error.to_string()))?;
    let size = input.metadata().map_err(|error| fail(error.to_string()))?.len();

    let step = Step::begin(format!("unpack {name}"), Some(size));
    let mut tar = command("tar");
    let mut tar = ends_with_us(&mut tar)
        .args(["-x", "--no-same-owner", option, "--strip-components=1", "-C"])
        .arg(&tree)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| fail(not_started("tar", &error)))?;
    if let Some(mut pipe) = tar.stdin.take() {
        let mut piece = vec![0; 1 << 16];
        loop {
            let count = input.read(&mut piece).map_err(|error| fail(error.to_string()))?;
            // If tar closed the pipe, tar reports the reason.
            if count == 0 || pipe.write_all(&piece[..count]).is_err() {
                break;
            }
            step.advance(count as u64);
        }
    }
    let output = tar.wait_with_output().or_unavailable(Phase::Source, "tar")?;
    if !output.status.success() {
        let text = String::from_utf8_lossy(&output.stderr);
        return Err(fail(text.lines().next().unwrap_or("tar failed").to_string()));
    }
    if !tree.join("Kbuild").is_file() {
        return Err(fail("it contains no kernel source: Kbuild is missing".into()));
    }
    step.done();
    Ok(tree)
}
