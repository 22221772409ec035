//! Saving and loading maps.

use crate::format::FormatError;
use crate::novelty::NoveltyMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;

/// Why saving or loading a map failed.
#[derive(Debug)]
pub struct FileError {
    operation: &'static str,
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Io(io::Error),
    Format(FormatError),
}

impl FileError {
    /// The file or directory that the operation failed on.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with the file's content. `None` if a system call failed.
    #[must_use]
    pub fn format(&self) -> Option<FormatError> {
        match self.kind {
            Kind::Format(error) => Some(error),
            Kind::Io(_) => None,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: ", self.operation, self.path.display())?;
        match &self.kind {
            Kind::Io(error) => error.fmt(f),
            Kind::Format(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for FileError {
    /// The [`io::Error`] or the [`FormatError`]. The message of this error includes it.
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            Kind::Io(error) => Some(error),
            Kind::Format(error) => Some(error),
        }
    }
}

impl<M: AsRef<[AtomicU64]>> NoveltyMap<M> {
    /// Saves the map to a file, replacing any existing one.
    ///
    /// Writes the map to a new file in the same directory, syncs it to the disk, and renames it. If
    /// the process or the machine stops at any point, the file is either the old or the new one. It
    /// may leave a file `PATH.NUMBER.new`, which you can delete once nobody saves.
    ///
    /// Threads and processes may save to one path at once. The last one to rename wins.
    ///
    /// # Errors
    ///
    /// Returns the system's error, with the operation and the path. The file is unchanged, unless
    /// the last operation, on the directory, failed.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let at = |operation, path: &Path| {
            let path = path.to_owned();
            move |error| FileError { operation, path, kind: Kind::Io(error) }
        };
        let bytes = self.to_bytes();
        let (beside, created) = create_beside(path);
        let file = created.map_err(at("write the map to", &beside))?;
        let result = write(file, &bytes)
            .map_err(at("write the map to", &beside))
            .and_then(|()| fs::rename(&beside, path).map_err(at("replace the map", path)));
        if result.is_err() {
            // Nobody uses the remains of a failed attempt.
            let _ = fs::remove_file(&beside);
            return result;
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        // The new name is on the disk once the directory is.
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(at("sync the directory", directory))
    }
}

impl NoveltyMap {
    /// Loads a map that [`save`](Self::save) wrote.
    ///
    /// # Errors
    ///
    /// Returns the system's error, or [what is wrong](FileError::format) with the content.
    pub fn load(path: impl AsRef<Path>) -> Result<NoveltyMap, FileError> {
        let error =
            |kind| FileError { operation: "load the map", path: path.as_ref().to_owned(), kind };
        let bytes = fs::read(path.as_ref()).map_err(|io| error(Kind::Io(io)))?;
        NoveltyMap::from_bytes(&bytes).map_err(|format| error(Kind::Format(format)))
    }
}

/// Creates a file in the same directory, so that the rename stays within a file system. It skips the
/// files of others who save at once, and the remains of those that crashed.
fn create_beside(path: &Path) -> (PathBuf, io::Result<File>) {
    let mut number = 0u64;
    loop {
        let mut beside = OsString::from(path);
        beside.push(format!(".{number}.new"));
        match File::create_new(&beside) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
            created => return (beside.into(), created),
        }
    }
}

fn write(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)?;
    file.sync_all()
}
