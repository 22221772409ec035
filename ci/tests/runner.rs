//! Uses `runner` as docs/src/test-your-fuzzer.md describes: cargo runs the tests of
//! a crate outside this workspace in a guest. The rest is the same as in `exec`.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs.

mod common;

use common::{Outcome, cargo_test, test_program};
use std::fs;
use std::path::Path;

fn runner(options: &[&str], program: &Path, arguments: &[&str]) -> Outcome {
    common::runner(&[&["linux-uml"], options].concat(), program, arguments)
}

#[test]
fn a_crates_own_tests_pass_in_a_guest() {
    let scratch = tempfile::tempdir().expect("a directory");
    let options = format!("--scratch {}", scratch.path().display());
    let Outcome { status, stdout, stderr } = cargo_test(&options, &[]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("the_first_seed_is_new_and_soon_nothing_is ... ok"), "{stdout}");
    assert!(stdout.contains("3 passed"), "{stdout}");
    // Documentation tests as well.
    assert!(stdout.contains("seeds (line") && stdout.contains("1 passed"), "{stdout}");
    let found = fs::read_to_string(scratch.path().join("found.txt"));
    assert_eq!(found.expect("it came back"), "a path that is new");
    let written = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzzer/written-in-a-guest");
    assert!(!written.exists(), "the guest has a copy of the crate");
}

#[test]
fn a_failing_test_fails() {
    let words = ["--test", "coverage"];
    let Outcome { status, stdout, stderr } = cargo_test("--env FUZZER_FAILS=1", &words);
    assert_eq!(status, Some(101), "{stdout}{stderr}");
    assert!(stdout.contains("2 passed; 1 failed"), "{stdout}");
    assert!(stdout.contains("told to fail"), "{stdout}");
}

#[test]
fn one_test_per_guest_as_nextest_has_it() {
    let list = runner(&[], test_program(), &["--list", "--format", "terse"]);
    assert_eq!(list.status, Some(0), "{}", list.stderr);
    assert_eq!(list.stderr, "");
    let names: Vec<_> = list.stdout.lines().filter_map(|l| l.strip_suffix(": test")).collect();
    assert_eq!(names.len(), 3, "{}", list.stdout);
    // Two guests at once.
    std::thread::scope(|scope| {
        for name in &names[..2] {
            scope.spawn(move || {
                let one = runner(&[], test_program(), &[name, "--exact", "--nocapture"]);
                assert_eq!(one.status, Some(0), "{name}: {}{}", one.stdout, one.stderr);
                assert!(one.stdout.contains("1 passed; 0 failed"), "{}", one.stdout);
            });
        }
    });
}

#[test]
fn without_the_crates_directory() {
    let words = ["the_first_seed_is_new_and_soon_nothing_is", "--exact"];
    let without = runner(&["--no-tree"], test_program(), &words);
    assert_eq!(without.status, Some(101), "{}", without.stderr);
    assert!(without.stdout.contains("the seeds"), "{}", without.stdout);
}
