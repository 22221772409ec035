//! A crate outside this workspace. cargo runs its tests in a guest as docs/src/test-your-fuzzer.md
//! describes.

use super::outcome::{Outcome, outcome, vm};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

const VM: &str = env!("CARGO_BIN_EXE_kcov-ci");
const RUNNER: &str = "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER";

fn crate_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzzer")
}

/// Runs `cargo test` in the crate with only the runner configured.
pub fn cargo_test(options: &str, words: &[&str]) -> Outcome {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("test").args(words).current_dir(crate_directory());
    cargo.env(RUNNER, format!("{VM} runner linux-uml {options}"));
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzzer"));
    outcome(&mut cargo)
}

/// Returns the crate's test program, built once.
pub fn test_program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let built = cargo_test("", &["--no-run", "--test", "coverage"]);
        assert_eq!(built.status, Some(0), "{}", built.stderr);
        let (_, rest) = built.stderr.rsplit_once('(').expect("cargo names the program");
        rest.trim_end().trim_end_matches(')').into()
    })
}

/// Starts the runner as cargo and nextest do; `words` are the target and its options.
pub fn runner(words: &[&str], program: &Path, arguments: &[&str]) -> Outcome {
    let mut command = vm(&["runner"]);
    command.args(words).arg(program).args(arguments);
    outcome(command.current_dir(crate_directory()).env("CARGO_MANIFEST_DIR", crate_directory()))
}
