//! The workspace and its files.

use kcov_vm::error::{OrUnavailable as _, Phase, Result};
use std::fs;
use std::path::{Path, PathBuf};

/// The workspace that built this program.
pub fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"))
}

/// Returns all files below a directory, sorted, without build output and git's own files.
pub fn files(directory: &Path) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).or_unavailable(Phase::Image, directory.display())? {
        let path = entry.or_unavailable(Phase::Image, directory.display())?.path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some("target" | ".git") => {}
            _ if path.is_dir() => found.extend(files(&path)?),
            _ => found.push(path),
        }
    }
    found.sort();
    Ok(found)
}
