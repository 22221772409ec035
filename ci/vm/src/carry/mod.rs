//! Host files for a guest: a program's libraries and the files that it reads,
//! each at its path on the host.

mod libraries;
mod scratch;
mod tree;

pub use scratch::Scratch;

use crate::arch::Arch;
use crate::elf;
use crate::layout::Layout;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The maximum total size. A booting guest holds it in memory twice.
const MOST: u64 = 512 << 20;

/// Directories where the guest mounts its own file systems.
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
    /// The directories that hold the libraries.
    libraries: BTreeSet<String>,
    bytes: u64,
}

impl Carried {
    /// Adds a file or directory. A program brings its libraries; a directory
    /// brings everything in it.
    pub fn add(&mut self, path: &Path) -> Result<(), String> {
        let at = place(path)?;
        if path.is_dir() {
            return self.tree(path, &at);
        }
        let content = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
        // A file that guests cannot execute may still be data.
        if let Ok(Some(loader)) = elf::loader(&content, Arch::host()) {
            self.libraries_of(path, &loader)?;
        }
        self.file(path, at, content)
    }

    /// Adds the loader and libraries of a dynamic program.
    pub(crate) fn libraries_of(&mut self, program: &Path, loader: &str) -> Result<(), String> {
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

    /// Adds an empty, writable directory.
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
            "cannot carry more than {} MiB into the guest, including {}; carry only what the \
             program reads",
            MOST >> 20,
            path.display()
        ))
    }

    /// Whether the guest has this directory of the host.
    pub fn has(&self, path: &Path) -> bool {
        let found = path.to_str().and_then(|path| self.entries.get(path));
        matches!(found, Some(Entry::Directory(_)))
    }

    /// The paths of all files and directories.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.entries.keys().map(String::as_str)
    }

    /// The library directories, in the form of `LD_LIBRARY_PATH`.
    pub(crate) fn library_path(&self) -> Option<String> {
        let all: Vec<_> = self.libraries.iter().map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join(":"))
    }

    /// The total size in bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Adds everything to an image that has only the root directory and the directories `made`.
    pub(crate) fn write(&self, image: &mut dyn Layout, made: &mut BTreeSet<String>) {
        for (path, entry) in &self.entries {
            ancestors(path, image, made);
            match entry {
                Entry::Directory(mode) => {
                    if made.insert(path.clone()) {
                        image.directory(path, *mode);
                    }
                }
                Entry::File(mode, content) => image.file(path, *mode, content),
                Entry::Link(to) => image.link(path, to),
            }
        }
    }
}

/// Adds a path's parent directories, each once.
pub(crate) fn ancestors(path: &str, image: &mut dyn Layout, made: &mut BTreeSet<String>) {
    for (at, _) in path.match_indices('/').filter(|(at, _)| *at > 0) {
        let directory = &path[..at];
        if made.insert(directory.to_string()) {
            image.directory(directory, 0o755);
        }
    }
}

/// Returns the path in the guest, which equals the path on the host. Refuses
/// paths that a guest cannot have.
pub(crate) fn place(path: &Path) -> Result<String, String> {
    let shown = path.display();
    let whole = std::path::absolute(path).map_err(|error| format!("{shown}: {error}"))?;
    let text = whole.to_str().ok_or_else(|| format!("{shown}: a path must be UTF-8"))?;
    let taken = |root: &&&str| whole.starts_with(root);
    if let Some(root) = TAKEN.iter().find(taken) {
        return Err(format!("{shown}: cannot be carried: a guest has its own {root}"));
    }
    let text = text.trim_end_matches('/');
    // `..` could lead out of a tree.
    if text.is_empty() || text.split('/').any(|part| part == "..") {
        return Err(format!("{shown}: cannot be carried into a guest; name it without `..`"));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests;
