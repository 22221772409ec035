//! Real guests: the output of a well-behaved program, and exit status 69 with its own message for
//! each way in which a run can fail.
//!
//! Needs the feature `guest-tests` and builds the kernel of `linux-uml` if the cache lacks it.

mod common;

use common::{Outcome, assert_ends_with_its_runner, assert_no_verdict, fixture, outcome, vm};
use rustix::fs::StatVfsMountFlags;
use rustix::process::geteuid;
use std::fs;
use std::io::{BufRead as _, BufReader, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::Command;

/// Runs the fixture through `exec`.
fn exec(options: &[&str], actions: &[&str]) -> Outcome {
    outcome(vm(&["exec", "linux-uml"]).args(options).arg("--").arg(fixture()).args(actions))
}

/// Runs the fixture as a KTAP program through `test`. Returns the exit status and the report.
fn ktap(actions: &[&str]) -> (Option<i32>, String) {
    let mut command = vm(&["test", "linux-uml", "--program"]);
    command.arg(fixture());
    let Outcome { status, stdout, .. } = outcome(command.arg("--").args(actions));
    (status, stdout)
}

#[track_caller]
fn no_verdict(actions: &[&str], options: &[&str], words: &[&str]) {
    assert_no_verdict(&exec(options, actions), words);
}

#[test]
fn exec_keeps_streams_apart_and_the_status() {
    let Outcome { status, stdout, stderr } =
        exec(&[], &["out", "to out", "err", "to err", "status", "7"]);
    assert_eq!(status, Some(7));
    assert_eq!(stdout, "to out\n");
    assert!(stderr.contains("to err\n") && !stderr.contains("to out"), "{stderr}");
}

/// Runs a command with this standard input.
fn with_input(words: &[&str], input: &str) -> (Option<i32>, String) {
    let mut file = tempfile::tempfile().expect("a file");
    file.write_all(input.as_bytes()).and_then(|()| file.rewind()).expect("written");
    let output = vm(words).stdin(file).output().expect("kcov-vm starts");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn standard_input_is_passed_on_if_requested() {
    let cat = |options: &[&str]| {
        let words = [&["exec", "linux-uml"], options, &["--", "cat"]].concat();
        with_input(&words, "one\ntwo\n")
    };
    assert_eq!(cat(&["--stdin"]), (Some(0), "one\ntwo\n".into()));
    assert_eq!(cat(&[]), (Some(0), String::new()));
}

#[test]
fn a_shell_runs_on_the_terminal() {
    let (status, said) =
        with_input(&["shell", "linux-uml"], "test -t 0 && echo $((6 * 7))\nexit 5\n");
    assert_eq!(status, Some(5), "{said}");
    assert!(said.contains("# 42\r\n"), "{said}");
}

#[test]
fn the_loopback_interface_is_up() {
    let Outcome { status, stderr, .. } = exec(&[], &["loopback"]);
    assert_eq!(status, Some(0), "{stderr}");
}

/// In most containers `/dev/shm`, the default place for the guest's memory, is mounted noexec.
/// Otherwise the test does so in a new mount namespace.
#[test]
fn a_guest_boots_where_shared_memory_forbids_programs() {
    let shared = rustix::fs::statvfs("/dev/shm").expect("/dev/shm");
    let mut command = if shared.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        vm(&[])
    } else {
        let mount = "mount -t tmpfs -o noexec,size=64m tmpfs /dev/shm && exec \"$@\"";
        let user: &[&str] = if geteuid().is_root() { &[] } else { &["--map-root-user"] };
        let mut command = Command::new("unshare");
        command.args(user).args(["--mount", "sh", "-c", mount, "sh"]).arg(vm(&[]).get_program());
        command
    };
    command.args(["test", "linux-uml", "--program"]).arg(fixture()).arg("--").env_remove("TMPDIR");
    let plan = ["out", "KTAP version 1", "out", "1..1", "out", "ok 1 a"];
    let Outcome { status, stdout, stderr } = outcome(command.args(plan));
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(stdout.contains("/dev/shm is mounted noexec"), "{stdout}");
}

#[test]
fn exec_tells_of_a_deadly_signal() {
    assert_eq!(exec(&[], &["signal", "15"]).status, Some(128 + 15));
}

#[test]
fn orphans_do_not_hold_the_guest() {
    let Outcome { status, stdout, .. } = exec(&[], &["orphan", "out", "left one", "status", "0"]);
    assert_eq!((status, stdout.as_str()), (Some(0), "left one\n"));
}

#[test]
fn a_guest_ends_with_its_runner() {
    let mut command = vm(&["exec", "linux-uml", "--"]);
    command.arg(fixture()).args(["out", "begun", "hang"]);
    assert_ends_with_its_runner(&mut command, |runner| {
        let mut line = String::new();
        BufReader::new(runner.stdout.take().expect("a pipe")).read_line(&mut line).expect("output");
        assert_eq!(line, "begun\n");
    });
}

#[test]
fn whole_results_are_judged() {
    let plan = ["out", "KTAP version 1", "out", "1..2", "out", "ok 1 a"];
    let (status, report) = ktap(&[&plan[..], &["out", "ok 2 b # SKIP why"]].concat());
    assert_eq!(status, Some(0), "{report}");
    assert!(report.contains("1 passed, 0 failed, 1 skipped"), "{report}");
    assert!(report.contains("skip b: why"), "{report}");

    let fail = ["out", "# because", "out", "not ok 2 b", "status", "1"];
    let (status, report) = ktap(&[&plan[..], &fail].concat());
    assert_eq!(status, Some(1), "{report}");
    assert!(report.contains("FAIL b\n         because\n"), "{report}");
}

#[test]
fn a_check_that_is_asked_for_and_skipped_is_no_verdict() {
    let check = ["--check", "api.proposed.once-is-not-for-remote-coverage"];
    let Outcome { status, stdout, .. } = outcome(vm(&["test", "linux-uml"]).args(check));
    assert_eq!(status, Some(69), "{stdout}");
    let why =
        "no check ran: api.proposed.once-is-not-for-remote-coverage is skipped, as the target";
    assert!(stdout.contains(why), "{stdout}");
}

#[test]
fn results_on_the_console_are_none() {
    let console = |line| ["write", "/dev/console", line];
    let lines = ["1..1", "ok 1 a", "@kcov-vm 00 exit status=0", "\u{1b}[2J\u{7}\u{fffd}"];
    let forged: Vec<&str> = lines.into_iter().flat_map(console).collect();
    let (status, report) = ktap(&forged);
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("verdict: there is no plan"), "{report}");
    // They do not change real results.
    let real = ["out", "1..1", "out", "not ok 1 a", "status", "1"];
    let (status, report) = ktap(&[&forged[..], &real].concat());
    assert_eq!(status, Some(1), "{report}");
}

#[test]
fn a_program_that_dies_is_no_verdict() {
    let (status, report) = ktap(&["out", "1..1", "err", "I die", "signal", "9"]);
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("killed by signal 9"), "{report}");
    assert!(report.contains("its standard error: I die"), "{report}");
}

#[test]
fn forged_frames_are_output_like_any_other() {
    let forged = "@kcov-vm 00 exit status=0";
    let Outcome { status, stdout, .. } =
        exec(&[], &["out", forged, "out", "@kcov-vm 00 end ", "status", "5"]);
    assert_eq!(status, Some(5));
    assert_eq!(stdout, format!("{forged}\n@kcov-vm 00 end \n"));
}

#[test]
fn garbage_on_the_channel() {
    no_verdict(
        &["write", "/dev/ttyS0", "hello", "status", "0"],
        &[],
        &["program: garbage on the channel: `hello`", "logs: "],
    );
}

#[test]
fn a_kernel_panic() {
    no_verdict(
        &["lkdtm", "PANIC"],
        &[],
        &["program: the kernel panicked: `Kernel panic - not syncing: dumptest`", "logs: "],
    );
}

#[test]
fn a_kernel_fault() {
    // On User-Mode Linux every kernel fault is a panic, not an oops. Only `BUG()` prints its own
    // message before.
    no_verdict(&["lkdtm", "EXCEPTION"], &[], &["the kernel panicked: `Kernel panic", "mode fault"]);
    no_verdict(&["lkdtm", "BUG"], &[], &["the kernel faulted: `BUG: failure at"]);
}

/// Drivers and programs write lines that begin like the kernel's complaints.
#[test]
fn text_in_the_kernels_log_spoils_nothing() {
    let texts = [
        "BUG: from user",
        "WARNING: from user",
        "Oops: from user",
        "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [prog:17]",
        "Kernel panic - not syncing: from user",
    ];
    let actions: Vec<_> = texts.iter().flat_map(|text| ["write", "/dev/kmsg", text]).collect();
    for end in [&["status", "7"][..], &["sleep", "2", "out", "still here", "status", "7"]] {
        let Outcome { status, stderr, .. } = exec(&["-v"], &[&actions, end].concat());
        assert_eq!(status, Some(7), "{stderr}");
        texts.iter().for_each(|text| assert!(stderr.contains(text), "{text}: {stderr}"));
    }
    let mount =
        ["exec", "linux-uml", "-v", "--", "mount", "-t", "tmpfs", "-o", "mand", "none", "/tmp"];
    let Outcome { status, stderr, .. } = outcome(&mut vm(&mount));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("WARNING: "), "{stderr}");
}

#[test]
fn what_the_kernel_finds_in_itself_spoils_a_pass() {
    let spoils = |actions: &[&str], words: &[&str]| {
        let pass = ["out", "1..1", "out", "ok 1 a", "status", "0"];
        let (status, report) = ktap(&[actions, &pass[..]].concat());
        assert_eq!(status, Some(69), "{report}");
        words.iter().for_each(|word| assert!(report.contains(word), "`{word}`: {report}"));
    };
    spoils(&["lkdtm", "REFCOUNT_ADD_OVERFLOW"], &[" refcount_t: saturated; leaking memory."]);
    let hung = ["write", "/proc/sys/kernel/hung_task_timeout_secs", "1", "lkdtm", "HUNG_TASK"];
    spoils(&hung, &["the kernel reports a hang: `INFO: task kcov-vm-fixture:"]);
    // Only the fixture takes memory, so there is one process to kill.
    let more = "`; --memory MIB gives the guest more";
    spoils(&["fill"], &["the kernel ran out of memory: `Out of memory: Killed process ", more]);
    let panic = ["write", "/proc/sys/vm/panic_on_oom", "2", "fill"];
    spoils(&panic, &["the kernel panicked: `Kernel panic - not syncing: Out of memory: ", more]);
}

#[test]
fn a_hung_program() {
    no_verdict(
        &["hang"],
        &["--time-limit", "2"],
        &[
            "program: the program hung: it did not end within 2 s; since the last output",
            "; --time-limit SECONDS gives it more",
        ],
    );
}

#[test]
fn a_guest_that_goes_down_early() {
    no_verdict(&["power-off"], &[], &["program: the guest went down before the program ended"]);
}

#[test]
fn another_kernel_than_declared() {
    no_verdict(
        &["status", "0"],
        &["--declare-release", "6.1."],
        &["boot: the kernel is not the declared one", "does not begin with `6.1.`"],
    );
}

/// Boots a script in place of a kernel.
#[track_caller]
fn no_boot(script: &str, words: &[&str]) {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("kernel");
    fs::write(&file, script).expect("a file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("permissions");
    let kernel = file.to_str().expect("UTF-8");
    no_verdict(&["status", "0"], &["--kernel", kernel, "--time-limit", "1"], words);
}

#[test]
fn an_image_that_does_not_boot() {
    no_boot(
        "#!/bin/sh\necho starting\nsleep 60 & sleep 60\n",
        &["boot: the guest did not boot within 1 s; last on its console: `starting`"],
    );
    no_boot(
        "#!/bin/sh\necho no such device >&2\nexit 3\n",
        &["boot: the guest did not boot: exit status 3", "its standard error: no such device"],
    );
}

#[test]
fn qemu_missing() {
    let mut command = vm(&["exec", "linux-7", "--kernel"]);
    command.arg(fixture()).arg("--").arg(fixture());
    let words = ["image: qemu-system-x86_64 missing", "apt-get install", "qemu-system-x86"];
    assert_no_verdict(&outcome(command.env("PATH", "")), &words);
}
