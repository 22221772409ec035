//! A machine's kernel in QEMU instead of User-Mode Linux.
//!
//! Needs the feature `machine-tests` and builds the kernel of `linux-7` if the cache lacks it.

mod common;

use common::{Outcome, runner, test_program, trace};

#[test]
fn a_crates_tests_pass_and_fail() {
    let passed = runner(&["linux-7"], test_program(), &[]);
    assert_eq!(passed.status, Some(0), "{}{}", passed.stdout, passed.stderr);
    assert!(passed.stdout.contains("3 passed"), "{}", passed.stdout);
    let failed = runner(&["linux-7", "--env", "FUZZER_FAILS=1"], test_program(), &[]);
    assert_eq!(failed.status, Some(101), "{}{}", failed.stdout, failed.stderr);
    assert!(failed.stdout.contains("2 passed; 1 failed"), "{}", failed.stdout);
}

/// The kernel has a new address on each boot, and its calls have another length than those of
/// User-Mode Linux.
#[test]
fn trace_knows_names() {
    let Outcome { status, stdout, stderr } = trace(&["linux-7"], "ls", &["/"]);
    assert_eq!(status, Some(0), "{stderr}");
    for function in ["iterate_dir", "__x64_sys_execve", "__handle_mm_fault"] {
        assert!(stdout.contains(&format!("  {function}\n")), "`{function}` is not in: {stdout}");
    }
    assert!(!stdout.contains("??"), "{stdout}");
}
