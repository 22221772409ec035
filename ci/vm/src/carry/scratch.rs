//! Receives the files that a program left in its scratch directory.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// The maximum total size, in bytes.
const MOST: u64 = 1 << 30;

/// Writes received files into one host directory and nowhere else.
#[derive(Debug)]
pub struct Scratch {
    root: PathBuf,
    file: Option<File>,
    bytes: u64,
    failed: Option<String>,
}

impl Scratch {
    /// Makes the directory now, so that a failure shows before anything runs.
    pub fn new(root: &Path) -> Result<Self, String> {
        fs::create_dir_all(root).map_err(|error| format!("{}: {error}", root.display()))?;
        Ok(Self { root: root.to_path_buf(), file: None, bytes: 0, failed: None })
    }

    /// Starts the next file at the path that the guest sent.
    pub fn file(&mut self, path: &OsStr, mode: u32) {
        self.file = None;
        if self.failed.is_none() {
            let made = self.create(Path::new(path), mode);
            self.file = self.kept(made, &self.root.join(path));
        }
    }

    /// Appends bytes to the current file.
    pub fn data(&mut self, bytes: &[u8]) {
        let Some(mut file) = self.file.take() else { return };
        self.bytes += bytes.len() as u64;
        let written = if self.bytes > MOST {
            Err(io::Error::other(format!("the guest sent more than {} MiB", MOST >> 20)))
        } else {
            file.write_all(bytes)
        };
        self.file = self.kept(written.map(|()| file), &self.root.clone());
    }

    /// Notes an error.
    fn kept(&mut self, file: io::Result<File>, path: &Path) -> Option<File> {
        file.map_err(|error| self.failed = Some(format!("{}: {error}", path.display()))).ok()
    }

    /// Reports the first file that could not be written.
    pub fn finish(self) -> Result<(), String> {
        self.failed.map_or(Ok(()), Err)
    }

    fn create(&self, path: &Path, mode: u32) -> io::Result<File> {
        let plain = path.components().all(|part| matches!(part, Component::Normal(_)));
        if !plain || path.as_os_str().is_empty() {
            return Err(io::Error::other("the guest named a file outside its directory"));
        }
        let path = self.root.join(path);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        // Replace a file of an earlier run. Writing through it could follow a link.
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let file = File::create_new(&path)?;
        file.set_permissions(fs::Permissions::from_mode(mode & 0o777))?;
        Ok(file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_back_below_the_directory_only() {
        let root = tempfile::tempdir().expect("a directory");
        let own = root.path().join("own");
        let mut scratch = Scratch::new(&own).expect("made");
        scratch.file(OsStr::new("a/b"), 0o640);
        scratch.data(b"hello, ");
        scratch.data(b"world");
        scratch.finish().expect("kept");
        assert_eq!(fs::read(own.join("a/b")).expect("a file"), b"hello, world");
        for path in ["../evil", "/evil", "a/../../evil", ""] {
            let mut scratch = Scratch::new(&own).expect("there");
            scratch.file(OsStr::new(path), 0o600);
            scratch.data(b"x");
            let why = scratch.finish().expect_err("refused");
            assert!(why.contains("outside its directory"), "{path}: {why}");
        }
        assert!(!root.path().join("evil").exists());
    }
}
