//! Tests on kernels that differ from `linux-uml`: with source lines, with the proposed interfaces of
//! ci/data/patches, without comparisons, and without kcov.
//!
//! They need the feature `variant-tests`. Kernels that the cache lacks are built first.

mod common;

use common::{Outcome, assert_addresses, example, trace};
use std::collections::BTreeSet;
use std::path::Path;

#[test]
fn proposed_unique_modes() {
    let Outcome { status, stdout, stderr } = example(&["linux-uml-uniq"], "unique_modes", &["6"]);
    assert_eq!(status, Some(0), "{stderr}");
    let lines: Vec<_> = stdout.lines().collect();
    let middle = lines.iter().position(|line| *line == "======edge======").expect("two parts");
    assert_addresses(&lines[1..middle]);
    assert_addresses(&lines[middle + 1..]);
    let unique: BTreeSet<_> = lines[1..middle].iter().collect();
    assert_eq!(unique.len(), middle - 1, "each once");
}

#[test]
fn proposed_call_tree() {
    let Outcome { status, stdout, stderr } = example(&["linux-uml-ext"], "call_tree", &[]);
    assert_eq!(status, Some(0), "{stderr}");
    for line in ["sys_openat() {", "  do_sys_openat2() {", "}"] {
        assert!(stdout.lines().any(|found| found == line), "`{line}` is not in: {stdout}");
    }
    let count = |end| stdout.lines().filter(|line| line.ends_with(end)).count();
    assert_eq!(count("{"), count("}"), "{stdout}");
}

#[test]
fn trace_with_source_lines() {
    let directory = tempfile::tempdir().expect("a directory");
    let info = directory.path().join("ls.info");
    let words = ["linux-uml-dwarf", "--lines", "--lcov", info.to_str().expect("UTF-8")];
    let Outcome { status, stdout, stderr } = trace(&words, "ls", &["/"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("    iterate_dir fs/readdir.c:"), "{stdout}");
    assert!(stdout.contains("    into "), "{stdout}");
    let info = std::fs::read_to_string(&info).expect("written");
    let file = info.split("end_of_record").find(|file| file.contains("/fs/readdir.c\n"));
    let file = file.expect("a file that was gone through");
    let source = file.lines().find_map(|line| line.strip_prefix("SF:")).expect("a path");
    assert!(Path::new(source).is_file(), "{source}");
    // A function that `ls` executes, and one that it does not.
    assert!(!file.contains("FNDA:0,iterate_dir\n"), "{file}");
    assert!(file.contains(",iterate_dir\n") && file.contains("FNDA:0,filldir\n"), "{file}");
    let count =
        |end: &str| file.lines().filter(|l| l.starts_with("DA:") && l.ends_with(end)).count();
    assert!(count(",0") > 0 && count(",2") > 0, "{file}");
}

#[test]
fn doctor_says_what_to_do() {
    let without = example(&["linux-uml-nokcov"], "doctor", &[]);
    assert_eq!(without.status, Some(1), "{}", without.stdout);
    assert!(without.stdout.contains(": this kernel has no kcov "), "{}", without.stdout);
    assert!(without.stdout.contains("CONFIG_KCOV=y"), "{}", without.stdout);
    let partly = example(&["linux-uml-nocmp"], "doctor", &[]);
    assert_eq!(partly.status, Some(0), "{}", partly.stdout);
    assert!(partly.stdout.starts_with("kcov: PC\n"), "{}", partly.stdout);
    let advice = "CONFIG_KCOV_ENABLE_COMPARISONS=y";
    assert!(partly.stdout.contains("comparisons: no: "), "{}", partly.stdout);
    assert!(partly.stdout.contains(advice), "{}", partly.stdout);
}

#[test]
fn trace_without_kcov() {
    let without = trace(&["linux-uml-nokcov"], "ls", &[]);
    assert_eq!(without.status, Some(69), "{}", without.stderr);
    assert!(without.stderr.contains("this kernel has no kcov"), "{}", without.stderr);
}
