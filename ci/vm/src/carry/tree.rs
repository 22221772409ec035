//! Carries a directory with everything in it.

use super::{Carried, Entry, place};
use crate::cache::MARK;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Directories of version control systems.
const HISTORIES: &[&str] = &[".git", ".hg", ".jj", ".svn"];

impl Carried {
    pub(super) fn tree(&mut self, directory: &Path, at: &str) -> Result<(), String> {
        let fail = |error: io::Error| format!("{}: {error}", directory.display());
        let mode = fs::metadata(directory).map_err(fail)?.permissions().mode() & 0o7777;
        self.entries.insert(at.to_string(), Entry::Directory(mode));
        for entry in fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let (kind, path) = (entry.file_type().map_err(fail)?, entry.path());
            let at = place(&path)?;
            if kind.is_dir() {
                let history = HISTORIES.iter().any(|name| entry.file_name() == *name);
                if !history && !path.join(MARK).exists() {
                    self.tree(&path, &at)?;
                }
            } else if kind.is_symlink() {
                let to = fs::read_link(&path).map_err(fail)?;
                // Guest paths must be UTF-8.
                if let Some(to) = to.to_str() {
                    self.entries.insert(at, Entry::Link(to.to_string()));
                }
            } else if kind.is_file() {
                // Check the size before reading a large file.
                let size = entry.metadata().map_err(fail)?.len();
                self.count(size, &path)?;
                self.bytes -= size;
                let content = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
                self.file(&path, at, content)?;
            }
        }
        Ok(())
    }
}
