//! Real guests: the output of a well-behaved program, and exit status 69 with its own message for
//! each way in which a run can fail.
//!
//! Needs the feature `guest-tests` and builds the kernel of `linux-uml` if the cache lacks it.

mod common {
    pub mod ended;
    pub mod fixture;
    pub mod outcome;
}

use common::ended::assert_ends_with_its_runner;
use common::fixture::{assert_no_verdict, fixture};
use common::outcome::{Outcome, outcome};
use rustix::fs::StatVfsMountFlags;
use rustix::process::geteuid;
use std::fs;
use std::io::{BufRead as _, BufReader, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

fn vm() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kcov-ci"))
}

/// Runs the fixture through `exec`.
fn exec(options: &[&str], actions: &[&str]) -> Outcome {
    outcome(vm().args(["exec", "linux-uml"]).args(options).arg("--").arg(fixture()).args(actions))
}

/// Runs the fixture as a KTAP program through `test`. Returns the exit status and the report.
fn ktap(actions: &[&str]) -> (Option<i32>, String) {
    ktap_with(&[], actions)
}

fn ktap_with(options: &[&str], actions: &[&str]) -> (Option<i32>, String) {
    let mut command = vm();
    command.args(["test", "linux-uml"]).args(options).arg("--program").arg(fixture());
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
    let output = vm().args(words).stdin(file).output().expect("kcov-vm starts");
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
fn a_guest_has_the_requested_memory() {
    let words = ["exec", "linux-uml", "--memory", "128", "--", "cat", "/proc/meminfo"];
    let (status, said) = with_input(&words, "");
    let total = said.lines().find_map(|line| line.strip_prefix("MemTotal:"));
    let total: u64 =
        total.and_then(|rest| rest.split_whitespace().next()?.parse().ok()).unwrap_or(0);
    assert_eq!(status, Some(0));
    assert!((64 << 10..=160 << 10).contains(&total), "{said}");
}

#[test]
fn exec_looks_in_path() {
    let outcome = outcome(vm().args(["exec", "linux-uml", "--", "echo", "hello"]));
    assert_eq!(
        (outcome.status, outcome.stdout.as_str()),
        (Some(0), "hello\n"),
        "{}",
        outcome.stderr
    );
}

#[test]
fn the_loopback_interface_is_up() {
    let Outcome { status, stderr, .. } = exec(&[], &["loopback"]);
    assert_eq!(status, Some(0), "{stderr}");
}

#[test]
fn output_that_cannot_be_written_is_no_verdict() {
    let full = || fs::File::options().write(true).open("/dev/full").expect("a device");
    let why = "kcov-vm: output: cannot write to standard output: No space left on device";
    for words in
        [&["exec", "linux-uml", "--"][..], &["test", "linux-uml", "--format", "json", "--program"]]
    {
        let mut command = vm();
        command.args(words).arg(fixture());
        if words[0] == "test" {
            command.arg("--");
        }
        command.args(["out", "1..1", "out", "ok 1 a", "status", "0"]).stdout(full());
        let child = command.stderr(Stdio::piped()).spawn().expect("it starts");
        let output = child.wait_with_output().expect("it ends");
        let stderr = String::from_utf8(output.stderr).expect("UTF-8");
        assert_eq!(output.status.code(), Some(69), "{words:?}: {stderr}");
        assert!(stderr.contains(why), "{words:?}: {stderr}");
    }
}

#[test]
fn a_topic_and_a_pattern_are_checks() {
    for word in ["open", "open.file-of-*"] {
        let words = ["test", "linux-uml", "--check", word];
        let Outcome { status, stdout, stderr } = outcome(vm().args(words));
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        let begin = word.trim_end_matches('*');
        let results: Vec<_> = stdout.lines().filter(|line| line.starts_with("    ok ")).collect();
        assert!(!results.is_empty(), "{stdout}");
        let id = |line: &str| line.split_whitespace().nth(1).map(String::from);
        let is_meant = |line: &&str| id(line).is_some_and(|id| id.starts_with(begin));
        assert!(results.iter().all(is_meant), "{word}: {stdout}");
    }
}

/// In most containers `/dev/shm`, the default place for the guest's memory, is mounted noexec.
/// Otherwise the test does so in a new mount namespace.
#[test]
fn a_guest_boots_where_shared_memory_forbids_programs() {
    let shared = rustix::fs::statvfs("/dev/shm").expect("/dev/shm");
    let mut command = if shared.f_flag.contains(StatVfsMountFlags::NOEXEC) {
        vm()
    } else {
        let mount = "mount -t tmpfs -o noexec,size=64m tmpfs /dev/shm && exec \"$@\"";
        let user: &[&str] = if geteuid().is_root() { &[] } else { &["--map-root-user"] };
        let mut command = Command::new("unshare");
        command.args(user).args(["--mount", "sh", "-c", mount, "sh"]).arg(vm().get_program());
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
    let mut command = vm();
    command.args(["exec", "linux-uml", "--"]).arg(fixture()).args(["out", "begun", "hang"]);
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
fn truncated_results_are_no_verdict() {
    let (status, report) = ktap(&["out", "1..3", "out", "ok 1 a"]);
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("verdict: results 2 to 3 of 3 are missing"), "{report}");
}

#[test]
fn results_of_no_check_are_no_verdict() {
    let skips = ["out", "1..2", "out", "ok 1 a # SKIP no net", "out", "ok 2 b # SKIP no disc"];
    let said = "verdict: no check ran: a is skipped, as no net, and so are 1 more";
    for (actions, why) in [
        (vec!["out", "1..0"], "verdict: no check ran: the plan is empty"),
        (skips.to_vec(), said),
        ([&skips[..], &["status", "69"]].concat(), said),
    ] {
        let (status, report) = ktap(&actions);
        assert_eq!(status, Some(69), "{report}");
        assert!(report.contains(why), "{report}");
    }
}

#[test]
fn a_check_that_is_asked_for_and_skipped_is_no_verdict() {
    let check = ["--check", "api.proposed.once-is-not-for-remote-coverage"];
    let Outcome { status, stdout, .. } = outcome(vm().args(["test", "linux-uml"]).args(check));
    assert_eq!(status, Some(69), "{stdout}");
    let why =
        "no check ran: api.proposed.once-is-not-for-remote-coverage is skipped, as the target";
    assert!(stdout.contains(why), "{stdout}");
}

#[test]
fn results_that_are_not_the_plans_are_no_verdict() {
    let all = ["out", "1..2", "out", "ok 1 a", "out", "ok 2 b"];
    let more: [(&[&str], &str); 4] = [
        (&["out", "ok 2 b"], "verdict: result 2 (b) came twice"),
        (&["out", "ok 1 c"], "verdict: result 1 (c) came twice"),
        (&["out", "ok 3 c"], "verdict: result 3 (c) is not in the plan 1..2"),
        (&["out", "1..3"], "verdict: there is a second plan"),
    ];
    for (added, why) in more {
        let (status, report) = ktap(&[&all[..], added].concat());
        assert_eq!(status, Some(69), "{report}");
        assert!(report.contains(why), "{report}");
    }
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
fn bailing_out_is_no_verdict() {
    let (status, report) = ktap(&["out", "1..1", "out", "Bail out! no device", "status", "1"]);
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("bailed out: no device"), "{report}");
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
    no_verdict(
        &["write", "/dev/ttyS0", "@kcov-vm 00 end ", "status", "0"],
        &[],
        &["program: a frame of another boot on the channel"],
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

#[test]
fn a_fault_is_shown_with_the_last_result() {
    // Init passes the result on while the program sleeps.
    let result = ["out", "1..2", "out", "ok 1 a", "sleep", "1"];
    let (status, report) = ktap(&[&result[..], &["lkdtm", "BUG"]].concat());
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("\n    the last result: a (1 of 2)\n    BUG: failure at"), "{report}");
}

#[test]
fn checks_that_failed_before_a_fault_are_shown() {
    let result = ["out", "1..2", "out", "# one is not two", "out", "not ok 1 a", "sleep", "1"];
    let (status, report) = ktap(&[&result[..], &["lkdtm", "WARNING", "out", "ok 2 b"]].concat());
    assert_eq!(status, Some(69), "{report}");
    assert!(report.starts_with("linux-uml: 7."), "the release is known: {report}");
    let words = "\n    failed before: a\n        one is not two\n    the last result: b (2 of 2)\n";
    assert!(report.contains(words), "{report}");
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
    let Outcome { status, stderr, .. } = outcome(vm().args(mount));
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stderr.contains("WARNING: "), "{stderr}");
}

#[test]
fn a_kernel_warning_spoils_a_pass() {
    let pass = ["lkdtm", "WARNING", "out", "1..1", "out", "ok 1 a", "status", "0"];
    let (status, report) = ktap(&pass);
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("the kernel warned: `WARNING: "), "{report}");
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
    let (status, report) =
        ktap_with(&["--time-limit", "2"], &["out", "1..2", "out", "ok 1 a", "hang"]);
    assert_eq!(status, Some(69), "{report}");
    assert!(report.contains("; last on its console: `"), "{report}");
    assert!(report.contains("\n    the last result: a (1 of 2)\n"), "{report}");
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

#[test]
fn an_init_that_cannot_do_its_duty() {
    // The same target with a setting that no kernel has.
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/data");
    let copy = tempfile::tempdir().expect("a directory");
    std::os::unix::fs::symlink(own.join("configs"), copy.path().join("configs")).expect("a link");
    let text = fs::read_to_string(own.join("targets.toml")).expect("targets");
    let text = text.replacen("memory =", "sysctl = { \"kernel.none\" = \"1\" }\nmemory =", 1);
    let file = copy.path().join("targets.toml");
    fs::write(&file, text).expect("a file");
    no_verdict(
        &["status", "0"],
        &["--targets", file.to_str().expect("UTF-8")],
        &["boot: the guest's init: cannot set kernel.none to 1"],
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
        "#!/bin/sh\nsleep 60 & sleep 60\n",
        &["boot: the guest did not boot within 1 s; nothing is on its console; --time-limit"],
    );
    no_boot(
        "#!/bin/sh\necho no such device >&2\nexit 3\n",
        &["boot: the guest did not boot: exit status 3", "its standard error: no such device"],
    );
    no_boot("not a program", &["image: ", "is not a program"]);
}

#[test]
fn qemu_missing() {
    let mut command = vm();
    command.args(["exec", "linux-7", "--kernel"]).arg(fixture()).arg("--").arg(fixture());
    let words = ["image: qemu-system-x86_64 missing", "apt-get install", "qemu-system-x86"];
    assert_no_verdict(&outcome(command.env("PATH", "")), &words);
}
