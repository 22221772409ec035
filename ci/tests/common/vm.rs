//! `kcov-vm` with its own cache, so that the user's files stay untouched.

use super::outcome::{Outcome, outcome, vm};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A directory for the cache and a test's files.
pub struct Vm(tempfile::TempDir);

impl Vm {
    pub fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = vm(words);
        command.env("KCOV_VM_CACHE", self.path().join("cache"));
        for name in ["KCOV_VM_NETBSD_KERNEL", "KCOV_VM_NETBSD_SYSROOT"] {
            command.env_remove(name);
        }
        command
    }
}

/// Asserts that one line on standard error says why.
#[allow(dead_code, reason = "not every file of tests has command lines to refuse")]
#[track_caller]
pub fn assert_refused(command: &mut Command, status: i32, words: &[&str]) {
    let Outcome { status: found, stdout, stderr } = outcome(command);
    assert_eq!((found, stdout.as_str()), (Some(status), ""), "{command:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{command:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{command:?}: `{word}` is not in: {stderr}");
    }
}
