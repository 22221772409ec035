//! `fuzz` in real guests: nothing of a death is lost.
//!
//! Needs the feature `guest-tests` and builds the kernel of `linux-uml` if the cache lacks it.

mod common {
    pub mod fixture;
    pub mod outcome;
}

use common::fixture::{assert_no_verdict, fixture};
use common::outcome::{Outcome, outcome};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn fuzz(directory: &Path, options: &[&str], actions: &[&str]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-ci"));
    command.args(["fuzz", "linux-uml", "--dir"]).arg(directory).args(options);
    outcome(command.arg("--").arg(fixture()).args(actions))
}

fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    paths
}

#[test]
fn a_deadly_input_is_saved_tried_again_and_made_smaller() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["--deaths", "3", "--guests", "2"];
    let Outcome { status, stdout, stderr } = fuzz(directory.path(), &options, &["fuzz", "PANIC"]);
    assert_eq!(status, Some(1), "{stdout}{stderr}");
    let [group] = &files(&directory.path().join("crashes"))[..] else {
        panic!("more than one group: {stdout}")
    };
    let name = group.file_name().and_then(|name| name.to_str());
    assert_eq!(name, Some("Kernel-panic-not-syncing-dumptest"));
    let read = |name: &str| fs::read(group.join(name)).expect(name);
    assert!(read("input").starts_with(b"die"));
    assert_eq!(read("input.min"), b"die");
    assert_eq!(read("again"), b"dies again; 3 of 10 bytes are needed\n");
    assert!(read("report").starts_with(b"Kernel panic - not syncing: dumptest\n"));
    assert!(read("console").windows(13).any(|words| words == b"Run /init as "));
    let inputs = files(&group.join("inputs"));
    assert!(!inputs.is_empty());
    for input in &inputs {
        assert!(fs::read(input).expect("an input").starts_with(b"die"), "{}", input.display());
    }

    let coverage = fs::read_to_string(directory.path().join("coverage")).expect("coverage");
    assert!(coverage.ends_with("\n0x10 1\n"), "{coverage}");

    // The next run starts from the corpus, and knows the group.
    let corpus = files(&directory.path().join("corpus")).len();
    assert!(corpus >= 2, "{stdout}");
    let again = fuzz(directory.path(), &["--deaths", "1"], &["fuzz", "PANIC"]);
    assert_eq!(again.status, Some(1), "{}{}", again.stdout, again.stderr);
    assert!(again.stdout.contains(&format!(", {corpus} inputs in ")), "{}", again.stdout);
    assert!(!again.stdout.contains("new: "), "{}", again.stdout);
}

#[test]
fn a_fuzzer_that_finds_nothing_has_passed() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["--seconds", "2", "--guests", "1"];
    let Outcome { status, stdout, stderr } = fuzz(directory.path(), &options, &["fuzz", "NONE"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(files(&directory.path().join("crashes")).is_empty(), "{stdout}");
}

#[test]
fn a_fuzzer_that_does_not_begin_is_no_verdict() {
    let directory = tempfile::tempdir().expect("a directory");
    let failed = fuzz(directory.path(), &[], &["status", "3"]);
    assert_no_verdict(&failed, &["no input ran: the fuzzer ended with status=3"]);
}
