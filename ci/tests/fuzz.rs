//! `fuzz` in real guests: nothing of a death is lost.
//!
//! Needs the feature `guest-tests` and builds the kernel of `linux-uml` if the cache lacks it.

mod common;

use common::{Outcome, assert_no_verdict, fixture, outcome, vm};
use rustix::process::{Pid, Signal, kill_process};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

fn command(directory: &Path, options: &[&str], actions: &[&str]) -> Command {
    let mut command = vm(&["fuzz", "linux-uml", "--foreground", "--dir"]);
    command.arg(directory).args(options);
    command.arg("--").arg(fixture()).args(actions);
    command
}

fn fuzz(directory: &Path, options: &[&str], actions: &[&str]) -> Outcome {
    outcome(&mut command(directory, options, actions))
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
    assert_eq!(name, Some("panic-dumptest"));
    let read = |name: &str| fs::read(group.join(name)).expect(name);
    assert!(read("input").starts_with(b"die"));
    assert_eq!(read("input.min"), b"die");
    assert_eq!(read("again"), b"dies again; 3 of 10 bytes are needed\n");
    let report = b"panic: dumptest\n\nKernel panic - not syncing: dumptest\n";
    assert!(read("report").starts_with(report));
    assert!(read("console").windows(13).any(|words| words == b"Run /init as "));
    let inputs = files(&group.join("inputs"));
    assert!(!inputs.is_empty());
    for input in &inputs {
        assert!(fs::read(input).expect("an input").starts_with(b"die"), "{}", input.display());
    }

    let coverage = fs::read_to_string(directory.path().join("coverage")).expect("coverage");
    assert!(coverage.contains("\"counts\":[[16,1]]"), "{coverage}");

    // The next run starts from the corpus, and knows the group.
    let corpus = files(&directory.path().join("corpus")).len();
    assert!(corpus >= 2, "{stdout}");
    let again = fuzz(directory.path(), &["--deaths", "1"], &["fuzz", "PANIC"]);
    assert_eq!(again.status, Some(1), "{}{}", again.stdout, again.stderr);
    assert!(again.stdout.contains(&format!(", inputs {corpus} in ")), "{}", again.stdout);
    assert!(!again.stdout.contains("new: "), "{}", again.stdout);
}

/// The only group, and what the command printed.
fn group(directory: &Path, outcome: &Outcome) -> (String, String) {
    let Outcome { status, stdout, stderr } = outcome;
    assert_eq!(*status, Some(1), "{stdout}{stderr}");
    let [group] = &files(&directory.join("crashes"))[..] else { panic!("not one group: {stdout}") };
    let input = fs::read(group.join("input")).expect("an input");
    assert!(input.starts_with(b"die"), "{stdout}");
    (group.file_name().expect("a name").to_string_lossy().into_owned(), stdout.clone())
}

/// The kernel survives a warning, so the runner has to end the guest. Only the runner notices an endless
/// loop: the kernel's own detector cannot distinguish it from a busy host.
#[test]
fn complaints_and_endless_loops_end_the_guest() {
    for (fault, expected, title) in [
        (
            "WARNING",
            "WARNING-in-lkdtm_WARNING-",
            ": WARNING in lkdtm_WARNING at drivers/misc/lkdtm/bugs.c:",
        ),
        ("SOFTLOCKUP", "soft-lockup-in-lkdtm_SOFTLOCKUP", ": soft lockup in lkdtm_SOFTLOCKUP\n"),
    ] {
        let directory = tempfile::tempdir().expect("a directory");
        let options = ["--deaths", "1", "--guests", "1"];
        let outcome = fuzz(directory.path(), &options, &["fuzz", fault]);
        let (name, stdout) = group(directory.path(), &outcome);
        // The warning's line number differs between kernels.
        assert_eq!(name.trim_end_matches(|c: char| c.is_ascii_digit()), expected);
        assert!(stdout.contains(title), "{stdout}");
        assert!(stdout.contains("dies again; 3 of 10 bytes are needed"), "{stdout}");
    }
}

#[test]
fn a_blocked_task_is_reported_with_its_stack() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["--deaths", "1", "--guests", "1", "--seconds", "30"];
    let limit = ["write", "/proc/sys/kernel/hung_task_timeout_secs", "2"];
    let outcome = fuzz(directory.path(), &options, &[&limit[..], &["fuzz", "HUNG_TASK"]].concat());
    let (name, stdout) = group(directory.path(), &outcome);
    assert_eq!(name, "task-blocked-in-lkdtm_HUNG_TASK", "{stdout}");
    let report = directory.path().join("crashes").join(name).join("report");
    let report = fs::read_to_string(report).expect("a report");
    assert!(report.contains(" seconds.\n") && report.contains("\nCall Trace:\n"), "{report}");
}

#[test]
fn an_interrupt_ends_like_the_time_limit() {
    let directory = tempfile::tempdir().expect("a directory");
    let mut command = command(directory.path(), &["--guests", "1"], &["fuzz", "NONE"]);
    let mut child = command.stdout(Stdio::piped()).spawn().expect("it starts");
    let corpus = directory.path().join("corpus");
    let is_running = || corpus.is_dir() && files(&corpus).len() >= 2;
    while !is_running() {
        assert_eq!(child.try_wait().expect("a child"), None);
        sleep(Duration::from_millis(100));
    }
    kill_process(Pid::from_child(&child), Signal::INT).expect("it runs");
    let output = child.wait_with_output().expect("it ends");
    let stdout = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    assert!(stdout.contains(", deaths 0, groups 0, "), "{stdout}");
    assert!(stdout.contains("1 program counters: "), "{stdout}");
    assert!(directory.path().join("coverage").is_file(), "{stdout}");
    assert!(files(&directory.path().join("crashes")).is_empty(), "{stdout}");
}

#[test]
fn a_fuzzer_that_finds_nothing_has_passed_if_it_began() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ["--seconds", "2", "--guests", "1"];
    let Outcome { status, stdout, stderr } = fuzz(directory.path(), &options, &["fuzz", "NONE"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(files(&directory.path().join("crashes")).is_empty(), "{stdout}");
    let failed = fuzz(directory.path(), &[], &["status", "3"]);
    assert_no_verdict(&failed, &["no input ran: the fuzzer ended with status=3"]);
}
