//! Where the runner's own files come from.

use crate::cache::Cache;
use crate::error::{OrUnavailable as _, Phase, Result};
use crate::hash;
use include_dir::{Dir, include_dir};
use std::fs;
use std::path::PathBuf;

/// The targets, and the files that they name.
static DATA: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/data");

/// The name of the file with the targets.
const TARGETS: &str = "targets.toml";

/// The origin of the targets and of the programs for guests.
#[derive(Clone, Debug, Default)]
pub struct Home {
    /// The workspace that builds the suite and the tracer. If it is `None`, installed programs are
    /// used.
    pub workspace: Option<PathBuf>,
    /// The file with the targets. Without one, the targets are those of this crate.
    pub targets: Option<PathBuf>,
}

impl Home {
    /// Returns the path of the file with the targets.
    pub fn targets(&self, cache: &Cache) -> Result<PathBuf> {
        match &self.targets {
            Some(file) => Ok(file.clone()),
            None => unpacked(cache),
        }
    }
}

/// Writes this crate's targets into the cache, once for each version of them.
fn unpacked(cache: &Cache) -> Result<PathBuf> {
    let mut text = String::new();
    digest(&DATA, &mut text);
    let name = format!("targets-{}", &hash::bytes(text.as_bytes())[..12]);
    let directory = cache.root().join(&name);
    let _lock = cache.lock(Phase::Targets, &name)?;
    let file = directory.join(TARGETS);
    if !file.is_file() {
        // The name appears when everything is there.
        let half = directory.with_extension("new");
        let _ = fs::remove_dir_all(&half);
        fs::create_dir(&half)
            .and_then(|()| DATA.extract(&half))
            .and_then(|()| fs::rename(&half, &directory))
            .or_unavailable(Phase::Targets, directory.display())?;
    }
    Ok(file)
}

fn digest(directory: &Dir<'_>, text: &mut String) {
    for file in directory.files() {
        *text += &format!("{} {}\n", file.path().display(), hash::bytes(file.contents()));
    }
    directory.dirs().for_each(|inner| digest(inner, text));
}
