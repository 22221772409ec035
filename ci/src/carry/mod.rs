//! What a program takes from the host into a guest: its libraries, and the
//! files that it reads, each at the place that it has on the host.

mod libraries;
mod scratch;
mod tree;

pub use scratch::Scratch;

use crate::cpio::Archive;
use crate::elf;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The most that is carried. The guest holds it in memory twice while it boots.
const MOST: u64 = 512 << 20;

/// Where a guest has file systems of its own.
const TAKEN: &[&str] = &["/dev", "/proc", "/sys"];

#[derive(Clone, Debug)]
enum Entry {
    Directory(u32),
    File(u32, Vec<u8>),
    Link(String),
}

/// Files of the host for a guest, by their absolute paths.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    entries: BTreeMap<String, Entry>,
    /// Trees that the program shall find read-only.
    read_only: BTreeSet<String>,
    /// Where libraries were found.
    libraries: BTreeSet<String>,
    bytes: u64,
}

impl Carried {
    /// Carries a file or a directory. A program comes with its libraries, a
    /// directory with all below it, read-only.
    pub fn add(&mut self, path: &Path) -> Result<(), String> {
        let at = place(path)?;
        if path.is_dir() {
            return self.tree(path, &at);
        }
        let content = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        // A file that no guest can execute may be meant to be read.
        if let Ok(Some(loader)) = elf::loader(&content) {
            self.libraries_of(path, &loader)?;
        }
        self.file(path, at, content)
    }

    /// Carries the libraries of a dynamic program, and its loader.
    pub fn libraries_of(&mut self, program: &Path, loader: &str) -> Result<(), String> {
        for path in libraries::of(program, loader)? {
            let at = place(&path)?;
            if self.entries.contains_key(&at) {
                continue;
            }
            if let Some((directory, _)) = at.rsplit_once('/') {
                self.libraries.insert(directory.to_string());
            }
            let content =
                fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            self.file(&path, at, content)?;
        }
        Ok(())
    }

    /// Carries an empty directory to which the program may write.
    pub fn directory(&mut self, at: &str, mode: u32) {
        self.entries.insert(at.to_string(), Entry::Directory(mode));
    }

    fn file(&mut self, path: &Path, at: String, content: Vec<u8>) -> Result<(), String> {
        self.count(content.len() as u64, path)?;
        let metadata = fs::metadata(path);
        let mode = metadata.map_or(0o644, |found| found.permissions().mode() & 0o7777);
        self.entries.insert(at, Entry::File(mode, content));
        Ok(())
    }

    fn count(&mut self, bytes: u64, path: &Path) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes <= MOST {
            return Ok(());
        }
        Err(format!(
            "more than {} MiB are to be carried into the guest, with {}; carry only what the \
             program reads",
            MOST >> 20,
            path.display()
        ))
    }

    /// Whether a directory of the host is there in the guest.
    pub fn has(&self, path: &Path) -> bool {
        let found = path.to_str().and_then(|path| self.entries.get(path));
        matches!(found, Some(Entry::Directory(_)))
    }

    /// The paths of all files and directories.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The directories that the program shall not write to.
    pub fn read_only(&self) -> impl Iterator<Item = &String> {
        self.read_only.iter()
    }

    /// Where the loader finds the libraries, as `LD_LIBRARY_PATH` has it.
    pub fn library_path(&self) -> Option<String> {
        let all: Vec<_> = self.libraries.iter().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join(":"))
    }

    /// How large it is, in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes everything to an archive that has no directories but the root.
    pub(crate) fn write(&self, archive: &mut Archive, made: &mut BTreeSet<String>) {
        for (path, entry) in &self.entries {
            ancestors(path, archive, made);
            match entry {
                Entry::Directory(mode) => {
                    made.insert(path.clone());
                    archive.directory(path, *mode);
                }
                Entry::File(mode, content) => archive.file(path, *mode, content),
                Entry::Link(to) => archive.link(path, to),
            }
        }
    }
}

/// Makes the directories that a path needs, each once.
pub(crate) fn ancestors(path: &str, archive: &mut Archive, made: &mut BTreeSet<String>) {
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
        let directory = &path[..at];
        if made.insert(directory.to_string()) {
            archive.directory(directory, 0o755);
        }
    }
}

/// The path in the guest: the same, if it can be there.
pub(crate) fn place(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let whole = std::path::absolute(path).map_err(|error| format!("{shown}: {error}"))?;
    let text = whole.to_str().ok_or_else(|| format!("{shown}: a path must be UTF-8"))?;
    let taken = |root: &&&str| whole.starts_with(root);
    if let Some(root) = TAKEN.iter().find(taken) {
        return Err(format!("{shown}: a guest has its own {root}"));
    }
    let text = text.trim_end_matches('/');
    // Also what would be a way out of a tree.
    if text.is_empty() || text.split('/').any(|part| part == "..") {
        return Err(format!("{shown}: cannot be carried into a guest; name it without `..`"));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests;
