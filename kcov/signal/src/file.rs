//! Maps in files.

use crate::format::FormatError;
use crate::novelty::NoveltyMap;
use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Why a map was not saved or loaded.
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
    /// The file or directory that the error is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What is wrong with the content of the file. `None` if the system refused an operation.
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

impl std::error::Error for FileError {}

impl NoveltyMap {
    /// Saves the map to a file and replaces what is there.
    ///
    /// The map is written to a new file in the same directory, synced to the disk, and renamed. If the
    /// process or the machine stops at any time, the file is either the old one or the new one.
    ///
    /// # Errors
    ///
    /// The system's error, with the operation and the path. Unless the operation was the last one, on
    /// the directory, the file is unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), FileError> {
        let path = path.as_ref();
        let beside = beside(path);
        let at = |operation, path: &Path| {
            let path = path.to_owned();
            move |error| FileError { operation, path, kind: Kind::Io(error) }
        };
        let result = write(&beside, &self.to_bytes())
            .map_err(at("write the map to", &beside))
            .and_then(|()| fs::rename(&beside, path).map_err(at("replace the map", path)));
        if result.is_err() {
            // What is left of the attempt is no map of anybody's.
            let _ = fs::remove_file(&beside);
            return result;
        }
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent,
            _ => Path::new("."),
        };
        // The new name is on the disk when the directory is.
        File::open(directory)
            .and_then(|directory| directory.sync_all())
            .map_err(at("bring to the disk the directory", directory))
    }

    /// Loads a map that [`save`](Self::save) wrote.
    ///
    /// # Errors
    ///
    /// The system's error, or [what is wrong](FileError::format) with the content.
    pub fn load(path: impl AsRef<Path>) -> Result<NoveltyMap, FileError> {
        let error =
            |kind| FileError { operation: "load the map", path: path.as_ref().to_owned(), kind };
        let bytes = fs::read(path.as_ref()).map_err(|io| error(Kind::Io(io)))?;
        NoveltyMap::from_bytes(&bytes).map_err(|format| error(Kind::Format(format)))
    }
}

/// A name in the same directory, so that renaming stays within a file system; this process's own,
/// so that two that save at once do not write to the same file.
fn beside(path: &Path) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(format!(".{}.new", std::process::id()));
    name.into()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}
