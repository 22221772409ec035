//! Runs the published crates' examples in guests.

use super::outcome::{Outcome, outcome, vm};
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The directory of the workspace's programs, from the same build as this test.
pub fn built() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet"]);
        cargo.args(["-p", "kcov", "-p", "kcov-signal", "--examples", "-p", "kcov-trace", "--bins"]);
        assert!(cargo.status().expect("cargo starts").success());
        let own = std::env::current_exe().expect("this program");
        own.ancestors().nth(2).expect("the profile's directory").to_path_buf()
    })
}

#[allow(dead_code, reason = "the tracer's tests need only the directory")]
/// Runs an example through `exec`; `words` are the target and its options.
pub fn example(words: &[&str], name: &str, arguments: &[&str]) -> Outcome {
    let mut command = vm(&["exec"]);
    command.args(words).arg("--").arg(built().join("examples").join(name));
    outcome(command.args(arguments))
}

#[allow(dead_code, reason = "the tracer's tests need only the directory")]
/// Asserts that each line is the address of an instruction in the kernel.
#[track_caller]
pub fn assert_addresses(lines: &[impl AsRef<str> + Debug]) {
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines.iter().map(AsRef::as_ref) {
        let digits = line.strip_prefix("0x").expect("a prefix");
        assert!(u64::from_str_radix(digits, 16).is_ok_and(|pc| pc > 0x6000_0000), "{line}");
    }
}
