//! Carries a directory with everything in it.

use super::{Because, Carried, Entry};
use crate::cache::MARK;
use std::fs;
use std::io;
use std::path::Path;

/// Directories of version control systems.
const HISTORIES: &[&str] = &[".git", ".hg", ".jj", ".svn"];

impl Carried {
    /// Adds what is in a directory. A link brings the file that it leads to.
    pub(super) fn tree(&mut self, directory: &Path) -> Result<(), String> {
        let fail = |error: io::Error| format!("{}: {error}", directory.display());
        self.way(directory)?;
        for entry in fs::read_dir(directory).map_err(fail)? {
            let entry = entry.map_err(fail)?;
            let (metadata, path) = (entry.metadata().map_err(fail)?, entry.path());
            let left_out = metadata.is_dir()
                && (HISTORIES.iter().any(|name| entry.file_name() == *name)
                    || path.join(MARK).exists());
            if left_out {
                continue;
            }
            if !metadata.is_symlink() {
                self.take(path, &metadata, Because::Found)?;
            } else if let (true, Ok(at)) = (path.is_file(), self.way(&path)) {
                let metadata = fs::metadata(&at).map_err(fail)?;
                self.take(at, &metadata, Because::Found)?;
            } else {
                let to = fs::read_link(&path).map_err(fail)?;
                self.entries.insert(path, Entry::Link(to));
            }
        }
        Ok(())
    }
}
