//! Builds the guests' init and caches it by its sources.

use crate::cache::{self, Cache};
use crate::error::{OrUnavailable as _, Phase, Result};
use crate::hash;
use crate::toolchain::{Program, Recipe};
use kcov_vm_guest::sources::{MANIFEST, SOURCES};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The program's name.
pub const NAME: &str = "kcov-vm-init";

const INIT: Program<'_> = Program { package: "kcov-vm-guest", binary: NAME };

/// Returns init from the cache. Builds it there if these sources or the recipe are new: in the
/// workspace, for its versions of other crates, or else alone.
pub fn kept(recipe: &Recipe, workspace: Option<&Path>, cache: &Cache) -> Result<PathBuf> {
    let mut text = format!("{recipe:?}\n{MANIFEST}");
    SOURCES.iter().for_each(|(path, content)| text += &format!("{path}\n{content}"));
    let name = format!("{NAME}-{}", &hash::bytes(text.as_bytes())[..12]);
    let kept = cache.programs().join(&name);
    if kept.is_file() {
        return Ok(kept);
    }
    let _lock = cache.lock(Phase::Image, &name)?;
    if kept.is_file() {
        return Ok(kept);
    }
    let alone = cache.programs().join("init");
    if workspace.is_none() {
        unpack(&alone).or_unavailable(Phase::Image, alone.display())?;
    }
    let target = cache.programs().join("target");
    let built = recipe.build(workspace.unwrap_or(&alone), INIT, &target)?;
    fs::read(&built)
        .and_then(|content| cache::keep(&kept, content))
        .or_unavailable(Phase::Image, kept.display())?;
    Ok(kept)
}

/// Writes the sources as a workspace of their own.
fn unpack(directory: &Path) -> io::Result<()> {
    for (path, content) in SOURCES.iter().chain(&[("Cargo.toml", MANIFEST)]) {
        let path = directory.join(path);
        fs::create_dir_all(path.parent().unwrap_or(directory))?;
        fs::write(path, content)?;
    }
    Ok(())
}
