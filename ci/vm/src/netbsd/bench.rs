//! Builds a kernel again and again from the user's tree, with one altered file.

use crate::cache::{Cache, Lock};
use crate::error::{Error, OrUnavailable as _, Phase, Result, Unavailable};
use crate::hash;
use crate::kernel::{AlteredTree, complaint};
use crate::run::command;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// The user's tree and command.
#[derive(Clone, Debug)]
pub struct Recipe {
    /// The tree.
    pub tree: PathBuf,
    /// The shell command, with placeholders.
    pub command: String,
}

/// The tree and its altered file.
#[derive(Debug)]
pub struct Bench {
    recipe: Recipe,
    file: PathBuf,
    original: String,
    kernel: PathBuf,
    log: PathBuf,
    /// The file that keeps the original.
    copy: PathBuf,
    _lock: Lock,
}

impl Bench {
    /// Keeps a copy of the file, for a user whose run is interrupted.
    pub fn open(recipe: &Recipe, file: &str, cache: &Cache) -> Result<Self> {
        let path = recipe.tree.join(file);
        let name = hash::bytes(recipe.tree.as_os_str().as_encoded_bytes());
        let name = format!("netbsd-{}", &name[..12]);
        let lock = cache.lock(Phase::Build, &format!("bench-{name}"))?;
        let directory = cache.at("benches").join(name);
        fs::create_dir_all(&directory).or_unavailable(Phase::Build, directory.display())?;
        let copy = directory.join("original");
        if copy.exists() {
            let why = format!(
                "{}: an interrupted run has left it altered; copy {} back, or delete that copy",
                path.display(),
                copy.display()
            );
            return Err(Error::unavailable(Phase::Build, why));
        }
        let original = fs::read_to_string(&path).or_unavailable(Phase::Source, path.display())?;
        fs::write(&copy, &original).or_unavailable(Phase::Build, copy.display())?;
        Ok(Self {
            recipe: recipe.clone(),
            file: path,
            original,
            kernel: directory.join("kernel"),
            log: directory.join("build.log"),
            copy,
            _lock: lock,
        })
    }

    /// Writes the text into the tree. make compares whole seconds, so the file has to be newer than
    /// any object.
    fn write(&self, text: &str) -> std::io::Result<()> {
        fs::write(&self.file, text)?;
        let newer = SystemTime::now() + Duration::from_secs(2);
        File::options().append(true).open(&self.file)?.set_modified(newer)
    }
}

impl AlteredTree for Bench {
    fn original(&self) -> &str {
        &self.original
    }

    fn build(&self, text: &str) -> Result<std::result::Result<PathBuf, String>> {
        self.write(text).or_unavailable(Phase::Build, self.file.display())?;
        let _ = fs::remove_file(&self.kernel);
        let path = |path: &Path| path.display().to_string();
        let line = self.recipe.command.replace("{tree}", &path(&self.recipe.tree));
        let line = line.replace("{kernel}", &path(&self.kernel));
        let mut shell = command("sh");
        shell.current_dir(&self.recipe.tree).args(["-c", &line]);
        let output = shell.output().or_unavailable(Phase::Build, "sh")?;
        let said = [output.stdout, output.stderr].concat();
        fs::write(&self.log, &said).or_unavailable(Phase::Build, self.log.display())?;
        let said = String::from_utf8_lossy(&said);
        let why = match output.status.success() {
            true if self.kernel.is_file() => return Ok(Ok(self.kernel.clone())),
            true => "it left no kernel at {kernel}".to_string(),
            false => {
                let name = self.file.file_name().unwrap_or_default().to_string_lossy();
                if let Some(why) = complaint(&said, &name) {
                    return Ok(Err(why));
                }
                output.status.to_string()
            }
        };
        let mut last: Vec<_> = said.lines().rev().take(5).map(str::to_string).collect();
        last.reverse();
        let message = format!("--build: {why} (log: {})", self.log.display());
        Err(Unavailable::new(Phase::Build, message).detail(last).into())
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        let restored = self.write(&self.original).and_then(|()| fs::remove_file(&self.copy));
        if let Err(error) = restored {
            eprintln!("{}: could not be restored: {error}", self.file.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The command copies the file, unless the compiler or the command fails.
    const BUILD: &str = "grep -q bad f.c && { echo 'f.c:1:1: error: bad'; exit 1; }; \
        grep -q fail f.c && exit 2; cp f.c {kernel}";

    #[test]
    fn the_original_comes_back_unless_a_run_was_interrupted() {
        let directory = tempfile::tempdir().expect("a directory");
        let tree = directory.path().join("tree");
        fs::create_dir(&tree).expect("a directory");
        let file = tree.join("f.c");
        fs::write(&file, "good").expect("a file");
        let cache = Cache::open(Some(&directory.path().join("cache"))).expect("a cache");
        let open =
            || Bench::open(&Recipe { tree: tree.clone(), command: BUILD.into() }, "f.c", &cache);
        let text = |path: &Path| fs::read_to_string(path).expect("a file");
        let bench = open().expect("its copy");
        let kernel = bench.build("other").expect("built").expect("a kernel");
        assert_eq!(text(&kernel), "other");
        assert_eq!(bench.build("bad").expect("not built"), Err("bad".into()));
        let error = bench.build("fail").expect_err("the command fails");
        assert_eq!((error.status(), &*text(&file)), (69, "fail"));
        let copy = bench.copy.clone();
        drop(bench);
        assert_eq!(text(&file), "good");
        fs::write(&copy, "the original").expect("a file");
        let error = open().expect_err("it has to be refused");
        assert!(error.to_string().contains("copy"), "{error}");
    }
}
