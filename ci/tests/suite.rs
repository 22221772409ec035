//! The runner's verdict on a suite that omits or skips a check. A script stands
//! in for the kernel and prints what a guest would.
//!
//! Needs the feature `guest-tests`, and no kernel.

mod common;

use common::{Outcome, outcome, vm};
use kcov_vm_guest::protocol::{Exit, Frame};
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

const ID: &str = "enable.busy-if-thread-already-enabled";

/// A kernel that prints `output` as the guest's program. One of its file
/// descriptors is the channel, and the initramfs holds the boot's nonce.
fn kernel(output: &str) -> String {
    let boot = Frame::Boot { release: "7.3.4".into(), machine: "x86_64".into() };
    let said = Frame::Out(output.as_bytes().to_vec());
    let all = [boot, Frame::Start, said, Frame::Exit(Exit::Status(0)), Frame::End];
    let frames: String = all.iter().map(|frame| frame.encode("NONCE")).collect();
    format!(
        r#"#!/bin/bash
for word; do
    case $word in
    initrd=*) nonce=$(grep -aoEm1 '"nonce":"[0-9a-f]+' "${{word#*=}}") ;;
    ssl0=*) channel=${{word##*:}} ;;
    esac
done
sed "s/NONCE/${{nonce##*\"}}/" >&"$channel" <<'END'
{frames}END
"#
    )
}

/// Tests one check in such a guest. Returns the exit status and the report.
fn test(output: &str) -> (Option<i32>, String) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("kernel");
    fs::write(&file, kernel(output)).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions");
    let mut command = vm(&["test", "linux-uml", "--check", ID, "--kernel"]);
    let Outcome { status, stdout, stderr } = outcome(command.arg(file));
    (status, stdout + &stderr)
}

#[test]
fn a_skip_of_what_the_target_declares_is_red() {
    let (status, report) =
        test(&format!("1..1\nok 1 {ID} # SKIP the target does not declare kcov\n"));
    assert_eq!(status, Some(1), "{report}");
    assert!(report.contains(&format!("FAIL {ID}\n         skipped, although ")), "{report}");
}

#[test]
fn a_check_that_is_left_out_is_no_verdict() {
    for (output, why) in [
        ("1..0\n", &*format!("{ID} has no result")),
        ("1..1\nok 1 open.twice\n", "open.twice has a result but was not requested"),
    ] {
        let (status, report) = test(output);
        assert_eq!(status, Some(69), "{report}");
        assert!(report.contains(&format!("verdict: {why}")), "{report}");
    }
}

#[test]
fn unknown_checks() {
    let words = ["test", "linux-uml", "--check", "no.such-check"];
    let Outcome { status, stdout, stderr } = outcome(&mut vm(&words));
    assert_eq!((status, stdout.as_str()), (Some(2), ""), "{stderr}");
    let said = "kcov-vm: --check no.such-check: no such check or topic on Linux";
    assert!(stderr.lines().any(|line| line.starts_with(said)), "{stderr}");
}
