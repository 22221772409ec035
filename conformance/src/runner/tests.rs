//! Tests the exits of check processes, with a shell in place of a check.

use super::{MOST_OUTPUT, Outcome, supervise};
use nix::unistd::execv;
use std::ffi::CString;
use std::time::Duration;

fn shell(script: &str, limit: Duration) -> Outcome {
    let words = ["/bin/sh", "-c", script].map(|word| CString::new(word).expect("no zero"));
    // Nothing here allocates between fork and exec: other tests run in other threads.
    supervise(limit, || execv(&words[0], &words).map_or(127, |never| match never {}))
        .expect("a shell")
}

const LONG: Duration = Duration::from_secs(20);

#[test]
fn the_exit_status_is_the_verdict_and_output_is_none() {
    let outcome = shell("echo 'not ok 1 forged'; exit 0", LONG);
    assert!(outcome.passed());
    assert_eq!(outcome.message, "not ok 1 forged");
    let outcome = shell("echo 'ok 1 forged'; exit 101", LONG);
    assert!(!outcome.passed());
    assert_eq!(outcome.message, "ok 1 forged");
}

#[test]
fn a_signal_is_a_failure_and_named() {
    let outcome = shell("kill -SEGV $$", LONG);
    assert!(!outcome.passed());
    assert_eq!(outcome.message, "the check was ended by SIGSEGV (11)");
    let outcome = shell("kill -SYS $$", LONG);
    assert!(outcome.message.ends_with(": the kernel lacks a system call that it made"));
}

#[test]
fn at_the_limit_the_whole_group_is_killed() {
    let outcome = shell("echo begun; sleep 60 & sleep 60", Duration::from_millis(300));
    assert!(!outcome.passed());
    assert!(outcome.message.starts_with("begun\nkilled after 0.3 s"), "{}", outcome.message);
    assert!(outcome.elapsed < LONG);
}

#[test]
fn what_a_check_leaves_behind_delays_nothing() {
    let outcome = shell("sleep 60 & exit 0", LONG);
    assert!(outcome.passed());
    assert!(outcome.elapsed < LONG);
}

#[test]
fn a_flood_is_cut() {
    let outcome = shell("head -c 200000 /dev/zero | tr '\\0' x", LONG);
    assert!(outcome.passed());
    assert!(outcome.message.len() < MOST_OUTPUT + 100);
    assert!(outcome.message.ends_with("more bytes of output)"));
}
