//! A copy of the workspace that builds the suite, unaltered or with an altered library.

use super::alteration::Alteration;
use crate::workspace;
use kcov_vm::cache::{self, Cache, Lock};
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result};
use kcov_vm::programs::Programs;
use std::fs;
use std::path::{Path, PathBuf};

/// The copy. It stays in the cache, so that builds are incremental. It holds its lock, so
/// that one suite is tested throughout.
pub struct Library<'a> {
    directory: PathBuf,
    programs: &'a Programs,
    _lock: Lock,
}

impl<'a> Library<'a> {
    /// Opens the copy and updates it.
    pub fn open(cache: &Cache, programs: &'a Programs) -> Result<Self> {
        let lock = cache.lock(Phase::Build, "bench-library")?;
        let library =
            Self { directory: cache.at("benches").join("library"), programs, _lock: lock };
        fs::create_dir_all(&library.directory)
            .or_unavailable(Phase::Image, library.directory.display())?;
        cache::touch(&library.directory);
        // A file that is gone could still be built: cargo finds tests by their names.
        for path in files(&library.directory)? {
            let inside = path.strip_prefix(&library.directory).unwrap_or(&path);
            if !workspace().join(inside).exists() {
                fs::remove_file(&path).or_unavailable(Phase::Image, path.display())?;
            }
        }
        for path in files(workspace())? {
            let content = fs::read(&path).or_unavailable(Phase::Image, path.display())?;
            library.put(path.strip_prefix(workspace()).unwrap_or(&path), &content)?;
        }
        Ok(library)
    }

    /// Returns the content of a workspace file.
    pub fn original(file: &str) -> Result<String> {
        let path = workspace().join(file);
        fs::read_to_string(&path).or_unavailable(Phase::Targets, path.display())
    }

    /// Builds the unaltered suite.
    pub fn unaltered(&self, triple: &str) -> Result<PathBuf> {
        self.programs.suite_of(&self.directory, triple)
    }

    /// Builds the suite with one file altered. The next build replaces the result. The inner error
    /// says why the alteration does not apply or compile.
    pub fn build(
        &self,
        alteration: &Alteration,
        triple: &str,
    ) -> Result<std::result::Result<PathBuf, String>> {
        let file = Path::new(&alteration.file);
        let original = Self::original(&alteration.file)?;
        let altered = match alteration.apply(&original) {
            Ok(altered) => altered,
            Err(why) => return Ok(Err(why)),
        };
        self.put(file, altered.as_bytes())?;
        let built = self.unaltered(triple);
        self.put(file, original.as_bytes())?;
        match built {
            // The unaltered suite has been built, so the compiler refuses the alteration.
            Err(Error::Unavailable(failure)) if failure.phase == Phase::Image => {
                Ok(Err(failure.message))
            }
            built => built.map(Ok),
        }
    }

    /// Writes only changed content, because cargo compares modification times.
    fn put(&self, file: &Path, content: &[u8]) -> Result<()> {
        let path = self.directory.join(file);
        if fs::read(&path).is_ok_and(|now| now == content) {
            return Ok(());
        }
        fs::create_dir_all(path.parent().unwrap_or(&self.directory))
            .and_then(|()| fs::write(&path, content))
            .or_unavailable(Phase::Image, path.display())
    }
}

/// Returns all files below a directory, sorted, without build output and git's own files.
fn files(directory: &Path) -> Result<Vec<PathBuf>> {
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
