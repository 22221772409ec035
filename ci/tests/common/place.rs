//! A test's own directory, and programs and libraries in C that are compiled there.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory for files and programs.
pub struct Place {
    path: PathBuf,
    _directory: tempfile::TempDir,
}

#[allow(dead_code, reason = "the tracer's tests need only programs")]
impl Place {
    /// Creates it below cargo's target directory, because `/tmp` may be mounted noexec.
    pub fn new() -> Self {
        let directory = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        let path = directory.path().canonicalize().expect("its path");
        Self { path, _directory: directory }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file, as text.
    pub fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().expect("UTF-8").into()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    /// Compiles a library whose soname is its file name.
    pub fn library(&self, name: &str, text: &str, words: &[&str]) {
        let soname = format!("-Wl,-soname,{}", name.rsplit('/').next().unwrap_or(name));
        self.compile(name, text, &[&["-shared", "-fPIC", &soname], words].concat());
    }

    pub fn compile(&self, name: &str, text: &str, words: &[&str]) {
        let source = self.write(&format!("{name}.c"), text);
        let mut gcc = Command::new("gcc");
        gcc.args(["-Wall", "-Wl,--allow-shlib-undefined", "-o"]).arg(self.path().join(name));
        let output = gcc.arg(source).args(words).output().expect("gcc starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}
