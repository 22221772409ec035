//! Caches the Linux guests' init by its sources.

use super::{INIT, Std, TRIPLE, compile_in, workspace};
use crate::cache::Cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use std::fs;
use std::path::PathBuf;

/// The sources of init. A change to any of them causes a new build.
const SOURCES: &[(&str, &str)] = &[
    ("Cargo.toml", include_str!("../../guest/Cargo.toml")),
    ("src/bin/fixture.rs", include_str!("../../guest/src/bin/fixture.rs")),
    ("src/bin/init.rs", include_str!("../../guest/src/bin/init.rs")),
    ("src/escape.rs", include_str!("../../guest/src/escape.rs")),
    ("src/job.rs", include_str!("../../guest/src/job.rs")),
    ("src/lib.rs", include_str!("../../guest/src/lib.rs")),
    ("src/protocol.rs", include_str!("../../guest/src/protocol.rs")),
    ("src/sys/linux.rs", include_str!("../../guest/src/sys/linux.rs")),
    ("src/sys/mod.rs", include_str!("../../guest/src/sys/mod.rs")),
    ("src/sys/netbsd.rs", include_str!("../../guest/src/sys/netbsd.rs")),
];

/// Returns init from the cache. Builds it there if these sources are new.
pub fn kept(cache: &Cache) -> Result<PathBuf> {
    let text: String = SOURCES.iter().flat_map(|(path, text)| [path, "\n", text]).collect();
    let name = format!("{}-{}", INIT.binary, &hash::bytes(text.as_bytes())[..12]);
    let kept = cache.programs().join(&name);
    if kept.is_file() {
        return Ok(kept);
    }
    let _lock = cache.lock(Phase::Image, &name)?;
    if kept.is_file() {
        return Ok(kept);
    }
    let source = workspace().join("ci/guest/src/bin/init.rs");
    if !source.is_file() {
        let message = format!(
            "the workspace that built kcov-vm is no longer at {}, and building the guests' \
             init needs it; install kcov-vm again with `cargo install --path ci`, from a \
             permanent clone",
            workspace().display()
        );
        return Err(Error::unavailable(Phase::Image, message));
    }
    let flags = ["-Ctarget-feature=+crt-static".to_string()];
    let target = cache.programs().join("target");
    let built = compile_in(workspace(), INIT, TRIPLE, &flags, Std::Installed, &target)?;
    // A copy that is killed halfway leaves no valid file.
    let half = kept.with_extension("new");
    fs::copy(&built, &half)
        .and_then(|_| fs::rename(&half, &kept))
        .or_unavailable(Phase::Image, kept.display())?;
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn init_is_made_from_these_sources() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("guest");
        let mut files = vec!["Cargo.toml".to_string()];
        for directory in ["src", "src/bin", "src/sys"] {
            for entry in fs::read_dir(root.join(directory)).expect("a directory") {
                let entry = entry.expect("an entry");
                if entry.path().is_file() {
                    files.push(format!("{directory}/{}", entry.file_name().to_string_lossy()));
                }
            }
        }
        files.sort_unstable();
        let known: Vec<_> = SOURCES.iter().map(|(path, _)| *path).collect();
        assert_eq!(files, known);
    }
}
