//! The files of a guest: host files, each at its path on the host, and the runner's own.

mod libraries;
mod scratch;

pub use scratch::Scratch;

use crate::arch::Arch;
use crate::cache::MARK;
use crate::elf::{self, Linked};
use rustix::fs::{major, minor};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, Metadata};
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The maximum total size. A booting guest holds it in memory twice.
pub(crate) const MOST: u64 = 512 << 20;

/// The memory that a file takes in a guest beside its content: the rest of a page, and its inode.
const PER_FILE: u64 = 8 << 10;

/// Directories where the guest mounts its own file systems.
const TAKEN: &[&str] = &["/dev", "/proc", "/sys"];

/// Directories of version control systems.
const HISTORIES: &[&str] = &[".git", ".hg", ".jj", ".svn"];

/// The kernel's limit for links in a path.
const LINKS: usize = 40;

/// Why a file is carried, which decides on its libraries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Because {
    /// The user named it.
    Named,
    /// It is in a directory.
    Found,
    /// A loader listed it, and its libraries.
    Listed,
}

/// The permissions and the owner of a file. For a special file, `mode` includes the file type.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Access {
    pub mode: u32,
    pub user: u32,
    pub group: u32,
}

impl Access {
    /// A file of root.
    pub const fn root(mode: u32) -> Self {
        Self { mode, user: 0, group: 0 }
    }
}

#[derive(Clone, Debug)]
pub(crate) enum Entry {
    Directory(Access),
    File(Access, Arc<[u8]>),
    Link(PathBuf),
    /// A pipe, a socket or a device with its numbers.
    Special(Access, (u32, u32)),
}

/// The files of a guest, by their absolute paths without links.
#[derive(Clone, Debug, Default)]
pub struct Carried {
    entries: BTreeMap<PathBuf, Entry>,
    bytes: u64,
    /// The guest's architecture, if programs bring libraries.
    arch: Option<&'static Arch>,
    /// The variables of the guest's loader.
    variables: Vec<(OsString, OsString)>,
    /// The loader of the first program, which also loads the libraries that have none.
    loader: Option<PathBuf>,
}

impl Carried {
    /// Makes an empty set for Linux programs, whose loader has these variables.
    pub(crate) fn linux(arch: &'static Arch, variables: Vec<(OsString, OsString)>) -> Self {
        Self { arch: Some(arch), variables, ..Self::default() }
    }

    /// Adds a file or directory. A program or library brings its libraries; a directory brings
    /// everything in it.
    pub fn add(&mut self, path: &Path) -> Result<(), String> {
        let at = self.way(path)?;
        let metadata = fs::metadata(&at).map_err(|error| format!("{}: {error}", path.display()))?;
        self.take(at, &metadata, Because::Named)
    }

    /// Adds the shell for system(3) and popen(3), if this machine's runs in the guest.
    pub(crate) fn shell(&mut self) {
        const SHELL: &str = "/bin/sh";
        let bytes = fs::read(SHELL).unwrap_or_default();
        if self.arch.is_some_and(|arch| elf::linked(&bytes, arch).is_ok()) {
            // A program that needs it says so.
            let _ = self.add(Path::new(SHELL));
        }
    }

    /// Adds the directories and links on the way to a path. Returns the path without links.
    pub(crate) fn way(&mut self, path: &Path) -> Result<PathBuf, String> {
        let fail = |error: io::Error| format!("{}: {error}", path.display());
        let at = follow(&std::path::absolute(path).map_err(fail)?, |at| {
            if let Some(root) = taken(at) {
                return Err(refusal(path, root));
            }
            let metadata = fs::symlink_metadata(at).map_err(fail)?;
            if metadata.is_symlink() {
                let to = fs::read_link(at).map_err(fail)?;
                self.entries.insert(at.into(), Entry::Link(to.clone()));
                return Ok(Some(to));
            }
            if metadata.is_dir() && at.parent().is_some() {
                let directory = Entry::Directory(access(&metadata));
                self.entries.entry(at.into()).or_insert(directory);
            }
            Ok(None)
        })?;
        Ok(at)
    }

    /// Adds the file or directory at a path without links.
    fn take(&mut self, at: PathBuf, metadata: &Metadata, why: Because) -> Result<(), String> {
        let fail = |error: io::Error| format!("{}: {error}", at.display());
        if metadata.is_dir() {
            return self.tree(&at);
        }
        if !metadata.is_file() {
            let device = metadata.rdev();
            let special = Entry::Special(access(metadata), (major(device), minor(device)));
            self.entries.insert(at, special);
            return Ok(());
        }
        if self.entries.contains_key(&at) {
            return Ok(());
        }
        // Count before reading a large file.
        self.count(metadata.len(), &at)?;
        let content = fs::read(&at).map_err(fail)?;
        if why != Because::Listed {
            self.libraries_of(&at, &content, why)?;
        }
        self.entries.insert(at, Entry::File(access(metadata), content.into()));
        Ok(())
    }

    /// Adds what is in a directory. A link brings the file that it leads to.
    fn tree(&mut self, directory: &Path) -> Result<(), String> {
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

    /// Adds the loader and libraries of a dynamic program or library. A file that guests cannot
    /// execute may still be data.
    fn libraries_of(&mut self, at: &Path, content: &[u8], why: Because) -> Result<(), String> {
        let Some(arch) = self.arch else { return Ok(()) };
        let (loader, is_program) = match elf::linked(content, arch) {
            Ok(Linked::By(loader)) => (PathBuf::from(loader), true),
            Ok(Linked::ByAnother) => match &self.loader {
                Some(loader) => (loader.clone(), false),
                None => return Ok(()),
            },
            Ok(Linked::Static) | Err(_) => return Ok(()),
        };
        // A directory may hold programs of other machines, as data. They must not start anything but
        // loaders. And a program may know better than we where a library's libraries are.
        let is_needed = why == Because::Named && is_program;
        let is_loader = loader.file_name().is_some_and(|name| name.as_bytes().starts_with(b"ld"));
        if !is_needed && !is_loader {
            return Ok(());
        }
        let found = match libraries::of(at, &loader, &self.variables) {
            Ok(libraries::Found { missing: Some(why), .. }) | Err(why) if is_needed => {
                return Err(why);
            }
            Ok(found) => found.files,
            Err(_) => return Ok(()),
        };
        if is_program {
            self.loader.get_or_insert(loader);
        }
        for path in found {
            let at = self.way(&path)?;
            let metadata = fs::metadata(&at).map_err(|e| format!("{}: {e}", path.display()))?;
            self.take(at, &metadata, Because::Listed)?;
        }
        Ok(())
    }

    /// Adds a file of the runner.
    pub(crate) fn file(&mut self, path: &Path, access: Access, content: Arc<[u8]>) {
        self.put(path, Entry::File(access, content));
    }

    /// Adds a file of the runner that counts towards the total size.
    pub(crate) fn input(&mut self, path: &Path, content: Vec<u8>) -> Result<(), String> {
        self.count(content.len() as u64, Path::new("standard input"))?;
        self.file(path, Access::root(0o600), content.into());
        Ok(())
    }

    /// Adds an entry of the runner, and its directory.
    pub(crate) fn put(&mut self, path: &Path, entry: Entry) {
        let at = self.real(path);
        if let Some(parent) = at.parent() {
            for directory in parent.ancestors().filter(|at| at.parent().is_some()) {
                let entry = Entry::Directory(Access::root(0o755));
                self.entries.entry(directory.into()).or_insert(entry);
            }
        }
        self.entries.insert(at, entry);
    }

    /// Adds an entry of the runner, unless there is one with this path.
    pub(crate) fn put_new(&mut self, path: &Path, entry: Entry) {
        let at = self.real(path);
        if !self.entries.contains_key(path) && !self.entries.contains_key(&at) {
            self.put(&at, entry);
        }
    }

    /// Follows the links of these entries.
    fn real(&self, path: &Path) -> PathBuf {
        let link = |at: &Path| match self.entries.get(at) {
            Some(Entry::Link(to)) => Ok(Some(to.clone())),
            _ => Ok(None),
        };
        follow(path, link).unwrap_or_else(|_| path.into())
    }

    fn count(&mut self, bytes: u64, path: &Path) -> Result<(), String> {
        self.bytes += bytes;
        if self.bytes <= MOST {
            return Ok(());
        }
        Err(format!(
            "cannot carry more than {} MiB into the guest, including {}; carry only what the \
             program reads, and under `runner` try --no-tree",
            MOST >> 20,
            path.display()
        ))
    }

    /// The content of a file.
    pub(crate) fn content(&self, path: &Path) -> Option<&[u8]> {
        match self.entries.get(&self.real(path)) {
            Some(Entry::File(_, content)) => Some(content),
            _ => None,
        }
    }

    /// The memory that the files take in a booting guest: once in the loaded image, once unpacked.
    pub(crate) fn memory(&self) -> u64 {
        let bytes = 2 * self.bytes + PER_FILE * self.entries.len() as u64;
        // The kernel describes each page of memory.
        bytes + bytes / 64
    }

    /// All entries. Parents come before their children.
    pub(crate) fn entries(&self) -> impl Iterator<Item = (&Path, &Entry)> {
        self.entries.iter().map(|(path, entry)| (path.as_path(), entry))
    }
}

/// Follows an absolute path. `link` takes each file on the way, and returns what it leads to if it is
/// a link.
fn follow(
    path: &Path,
    mut link: impl FnMut(&Path) -> Result<Option<PathBuf>, String>,
) -> Result<PathBuf, String> {
    let parts = |path: &Path| {
        path.components().rev().map(|part| part.as_os_str().to_os_string()).collect::<Vec<_>>()
    };
    let (mut left, mut at, mut links) = (parts(path), PathBuf::new(), 0);
    while let Some(part) = left.pop() {
        if part == ".." {
            at.pop();
            continue;
        }
        at.push(part);
        if let Some(to) = link(&at)? {
            links += 1;
            if links > LINKS {
                return Err(format!("{}: {}", path.display(), io::Error::from(Errno::LOOP)));
            }
            left.extend(parts(&to));
            at.pop();
        }
    }
    Ok(at)
}

/// The guest's own directory that hides a path.
fn taken(at: &Path) -> Option<&'static str> {
    TAKEN.iter().copied().find(|root| at.starts_with(root))
}

fn refusal(path: &Path, root: &str) -> String {
    let path = path.display();
    format!("{path}: cannot be carried: a guest has its own {root}; copy it elsewhere")
}

/// A file's permissions and owner. The user who runs this program is the guest's root.
fn access(metadata: &Metadata) -> Access {
    let special = !metadata.is_file() && !metadata.is_dir();
    let mode = metadata.mode() & if special { 0o177_777 } else { 0o7777 };
    let (user, group) = (metadata.uid(), metadata.gid());
    let root = |id, own| if id == own { 0 } else { id };
    Access { mode, user: root(user, geteuid().as_raw()), group: root(group, getegid().as_raw()) }
}

#[cfg(test)]
mod tests;
