//! The program without a workspace, as `cargo install` leaves it.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread::yield_now;
use tempfile::TempDir;

/// A copy of the program in a directory of its own, with an empty cache.
struct Installed(TempDir);

impl Installed {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join("kcov-vm");
        fs::copy(env!("CARGO_BIN_EXE_kcov-vm"), program).expect("a copy");
        Self(directory)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, text).expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        path
    }

    /// Runs the program. Returns its exit status and messages.
    fn run(&self, words: &[&str], kernel: &Path) -> (Option<i32>, String) {
        let mut command = Command::new(self.path("kcov-vm"));
        command.current_dir(self.0.path()).env("KCOV_VM_CACHE", self.path("cache"));
        command.args(words).arg("--kernel").arg(kernel);
        let output = loop {
            match command.output() {
                // A child of another test holds the copied file for writing until it executes.
                Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => yield_now(),
                output => break output.expect("it starts"),
            }
        };
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    }
}

/// The list of targets comes from the program, and so do the sources of the guests' init.
#[test]
fn a_guest_boots_with_init() {
    let installed = Installed::new();
    let kernel = installed.script("kernel", "#!/bin/sh\necho no kernel\nexit 3\n");
    let (status, said) = installed.run(&["test", "linux-uml", "--program", "/bin/true"], &kernel);
    assert_eq!(status, Some(69), "{said}");
    let programs = fs::read_dir(installed.path("cache/programs")).expect("programs");
    let names: Vec<_> = programs.map(|entry| entry.expect("an entry").file_name()).collect();
    let init = |name: &std::ffi::OsString| name.to_string_lossy().starts_with("kcov-vm-init-");
    assert!(names.iter().any(init), "{names:?}: {said}");
}

#[test]
fn a_suite_beside_the_program_is_used() {
    let installed = Installed::new();
    let kernel = installed.script("kernel", "#!/bin/sh\n");
    installed.script("kcov-conformance", "#!/bin/sh\necho 'only.check a claim'\n");
    let words = ["test", "linux-uml", "--check", "other.check"];
    let (status, said) = installed.run(&words, &kernel);
    assert_eq!(status, Some(2), "{said}");
    assert!(said.contains("--check other.check: no such check"), "{said}");
}
