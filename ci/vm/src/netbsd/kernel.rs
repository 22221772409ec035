//! Checks the kernel that the user gave.

use super::elf;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use std::fs;
use std::path::Path;

/// Refuses files that cannot be a kernel of this release, before anything is built for it. Returns
/// whether QEMU starts it directly, without a disc.
pub fn check(file: &Path, release: &str) -> Result<bool> {
    let bytes = fs::read(file).or_unavailable(Phase::Kernel, file.display())?;
    examine(&bytes, release).map_err(|why| {
        Error::unavailable(Phase::Kernel, format!("--kernel {}: {why}", file.display()))
    })
}

fn examine(bytes: &[u8], release: &str) -> std::result::Result<bool, String> {
    if bytes.starts_with(b"\x1f\x8b") {
        return Err("is packed; unpack it with gunzip".into());
    }
    let version = elf::netbsd_version(bytes)
        .ok_or("is not a NetBSD/amd64 kernel: it lacks NetBSD's ELF note")?;
    if !elf::is_kernel(bytes) {
        return Err("is a NetBSD program, not a kernel".into());
    }
    let version = words(version);
    if !version.starts_with(release) {
        return Err(format!(
            "is NetBSD {version}, which does not begin with `{release}`; select another \
             beginning with --abi or --declare-release"
        ));
    }
    Ok(elf::has_pvh_entry(bytes))
}

/// Formats the version number `MMmmrrpp00`. Only development versions use the patch level.
fn words(version: u32) -> String {
    let (major, minor, patch) = (version / 100_000_000, version / 1_000_000 % 100, version / 100);
    match patch % 10_000 {
        0 => format!("{major}.{minor}"),
        patch => format!("{major}.{minor}.{patch}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::elf::tests::{file, ident, pvh};
    use super::*;

    const HIGH: u64 = 0xffff_ffff_8020_b000;

    #[test]
    fn the_notes_decide() {
        let both = [ident(), pvh()].concat();
        assert_eq!(examine(&file(HIGH, &both, true), "10."), Ok(true));
        assert_eq!(examine(&file(HIGH, &both, false), "10."), Ok(false));
        assert_eq!(examine(&file(HIGH, &ident(), true), "10."), Ok(false));
    }

    #[test]
    fn other_files_are_refused() {
        let refused = |bytes: &[u8], release, words| {
            let why = examine(bytes, release).expect_err("not a kernel");
            assert!(why.contains(words), "{why}");
        };
        refused(&file(HIGH, &pvh(), true), "10.", "is not a NetBSD/amd64 kernel");
        refused(&file(0x40_0000, &ident(), true), "10.", "is a NetBSD program");
        refused(b"\x1f\x8b\x08", "10.", "gunzip");
        refused(b"", "10.", "is not a NetBSD/amd64 kernel");
        refused(&file(HIGH, &ident(), true), "9.", "is NetBSD 10.99.12, which");
        assert_eq!([999_000_200, 1_001_000_000].map(words), ["9.99.2", "10.1"]);
    }
}
