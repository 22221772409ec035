//! Tests in a guest that the tracer does what docs/src/trace.md describes.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs.

mod common;

use common::{Outcome, Place, built, outcome, trace, vm};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles a program in a directory that goes with the first value.
fn compiled(which: &str) -> (Place, String) {
    let place = Place::for_programs();
    place.program("program", which, &["-pthread"]);
    let program = place.file("program");
    (place, program)
}

#[test]
fn trace_of_a_program_of_the_host() {
    let directory = tempfile::tempdir().expect("a directory");
    let raw = directory.path().join("raw");
    let folded = directory.path().join("folded");
    let [raw_name, folded_name] = [&raw, &folded].map(|path| path.to_str().expect("UTF-8"));
    let words = ["linux-uml", "--raw", raw_name, "--folded", folded_name];
    let Outcome { status, stdout, stderr } = trace(&words, "ls", &["/"]);
    assert_eq!(status, Some(0), "{stderr}");
    // Its own output, then the kernel code it executed.
    assert!(stdout.lines().any(|line| line == "proc"), "{stdout}");
    assert!(stdout.contains(" ls: ") && stdout.contains(" functions of Linux 7."), "{stdout}");
    for function in ["iterate_dir", "execve", "__handle_mm_fault"] {
        assert!(stdout.contains(function), "`{function}` is not in: {stdout}");
    }
    let folded = std::fs::read_to_string(&folded).expect("written");
    assert!(folded.lines().any(|line| line.starts_with("iterate_dir ")), "{folded}");

    // Reads the saved trace without names, as on another machine.
    let read = Command::new(built().join("kcov-trace")).arg("--read").arg(&raw).output();
    let read = String::from_utf8(read.expect("it starts").stdout).expect("UTF-8");
    assert_eq!(read.lines().next(), stdout.lines().find(|line| line.starts_with("process ")));
    assert!(read.contains("  ??\n"), "{read}");
}

#[test]
fn trace_follows_forks_threads_and_execs() {
    let (_place, program) = compiled("FOLLOW");
    let Outcome { status, stdout, stderr } =
        trace(&["linux-uml", "--carry", "/bin/true"], &program, &[]);
    assert_eq!((status, stderr.as_str()), (Some(7), ""), "{stdout}");
    let threads: Vec<_> = stdout.lines().filter(|line| line.starts_with("process ")).collect();
    let names = [" a worker: ", " program: ", " program: ", " true: "];
    assert_eq!(threads.len(), names.len(), "{stdout}");
    for name in names {
        assert!(threads.iter().any(|line| line.contains(name)), "`{name}` is not in {threads:?}");
    }
    // The thread that became `true` took its process's number, which the killed thread had.
    let number = |line: &&str| line.split(' ').nth(3).map(str::to_string);
    let of_true = threads.iter().find(|line| line.contains(" true: ")).and_then(number);
    assert_eq!(threads.iter().filter(|line| number(line) == of_true).count(), 2, "{threads:?}");
}

#[test]
fn trace_passes_the_status_on_and_tells_of_full_buffers() {
    let Outcome { status, stdout, .. } =
        trace(&["linux-uml", "--words", "1024"], "sh", &["-c", "kill -9 $$"]);
    assert_eq!(status, Some(128 + 9), "{stdout}");
    assert!(stdout.contains(", truncated\n") && stdout.contains("--words N"), "{stdout}");
}

/// The number of records of the first process.
fn records(stdout: &str) -> u64 {
    let line = stdout.lines().find(|line| line.starts_with("process ")).expect("a process");
    let records = line.split(": ").nth(1).and_then(|rest| rest.split(' ').next());
    records.and_then(|records| records.parse().ok()).expect("a number")
}

#[test]
fn trace_empties_buffers_before_they_are_full() {
    let many = "i=0; while [ $i -lt 5000 ]; do echo >/dev/null; i=$((i + 1)); done";
    let Outcome { status, stdout, stderr } =
        trace(&["linux-uml", "--words", "524288"], "sh", &["-c", many]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    assert!(records(&stdout) > 524_288, "{stdout}");
}

/// The command does not begin by unmapping the tracer's buffers.
#[test]
fn trace_does_not_have_the_tracers_own_work() {
    let [small, large] = ["524288", "2097152"].map(|words| {
        let Outcome { status, stdout, stderr } =
            trace(&["linux-uml", "--words", words], "ls", &["/proc/self"]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        records(&stdout)
    });
    assert!(large < small + 10_000, "{small} and {large} records");
}

#[test]
fn trace_keeps_what_was_collected_until_the_time_limit() {
    let endless = "(while :; do echo >/dev/null; done) & wait";
    let Outcome { status, stdout, stderr } =
        trace(&["linux-uml", "--time-limit", "2"], "sh", &["-c", endless]);
    assert_eq!(status, Some(69), "{stdout}{stderr}");
    assert!(stderr.contains("did not end within 2 s and was killed"), "{stderr}");
    let threads = stdout.lines().filter(|line| line.starts_with("process ")).count();
    assert_eq!(threads, 2, "{stdout}");
    assert!(stdout.contains(" ksys_write"), "{stdout}");
}

#[test]
fn what_cannot_be_traced() {
    let none = trace(&["linux-uml"], "/none/program", &[]);
    assert_eq!(none.status, Some(2), "{}", none.stderr);
    let none = trace(&["linux-uml"], "kcov-vm-no-such-program", &[]);
    assert_eq!(none.status, Some(2), "{}", none.stderr);
    assert!(none.stderr.contains("no such program in PATH"), "{}", none.stderr);
    let lines = trace(&["linux-uml", "--lcov", "/dev/null", "--quiet"], "ls", &[]);
    assert_eq!(lines.status, Some(69), "{}", lines.stderr);
    assert!(lines.stderr.contains("linux-uml-dwarf"), "{}", lines.stderr);
}

/// Runs the tracer on recordings.
fn read(recordings: &[&Path], words: &[&str]) -> Outcome {
    let mut command = Command::new(built().join("kcov-trace"));
    for file in recordings {
        command.arg("--read").arg(file);
    }
    outcome(command.args(words))
}

/// The kernel's image of a target.
fn image(target: &str) -> PathBuf {
    let built = outcome(&mut vm(&["build", target]));
    let kernel = built.stdout.split(' ').nth(1).expect("a path");
    Path::new(kernel).with_file_name("vmlinux")
}

#[test]
fn recordings_are_added_up() {
    let directory = tempfile::tempdir().expect("a directory");
    let record = |name: &str, program: &str, argument: &str| {
        let file = directory.path().join(name);
        let words = ["linux-uml", "--quiet", "--raw", file.to_str().expect("UTF-8")];
        let Outcome { status, stderr, .. } = trace(&words, program, &[argument]);
        assert_eq!(status, Some(0), "{stderr}");
        file
    };
    let (list, link) = (record("a", "ls", "/"), record("b", "readlink", "/proc/self"));
    let own = image("linux-uml");
    let own = own.to_str().expect("UTF-8");
    let names = |files: &[&Path]| {
        let Outcome { status, stdout, stderr } = read(files, &["--vmlinux", own]);
        assert_eq!(status, Some(0), "{stderr}");
        ["iterate_dir", "proc_self_get_link"]
            .map(|name| stdout.lines().any(|line| line.ends_with(&format!("  {name}"))))
    };
    assert_eq!(names(&[&list]), [true, false]);
    assert_eq!(names(&[&link]), [false, true]);
    assert_eq!(names(&[&list, &link]), [true, true]);
}

/// A user's kernel is its own image, whatever lies beside it.
#[test]
fn trace_on_a_users_kernel() {
    let directory = tempfile::tempdir().expect("a directory");
    let kernel = directory.path().join("linux");
    std::fs::copy(image("linux-uml"), &kernel).expect("a copy");
    std::fs::write(directory.path().join("vmlinux"), "of another kernel").expect("a file");
    let words = ["linux-uml", "--kernel", kernel.to_str().expect("UTF-8")];
    let Outcome { status, stdout, stderr } = trace(&words, "ls", &["/"]);
    assert_eq!(status, Some(0), "{stderr}");
    assert!(stdout.contains("  iterate_dir"), "{stdout}");
}

#[test]
fn trace_has_the_work_of_workers() {
    let (_place, program) = compiled("WORKERS");
    let directory = tempfile::tempdir().expect("a directory");
    let folded = directory.path().join("folded");
    let words = ["linux-uml", "--folded", folded.to_str().expect("UTF-8")];
    let Outcome { status, stdout, stderr } = trace(&words, &program, &["1"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.lines().any(|line| line.starts_with("background: ")), "{stdout}");
    assert!(!stdout.contains("truncated"), "{stdout}");
    // The program itself prepared the request and opened the file.
    for (function, mark) in [
        ("uptime_proc_show", " (background)"),
        ("vhost_flush_work", " (background)"),
        ("proc_single_open", ""),
        ("io_uring_setup", ""),
    ] {
        let is_here = |line: &&str| line.contains(&format!("  {function}"));
        let line = stdout.lines().find(is_here);
        let line = line.unwrap_or_else(|| panic!("`{function}` is not in: {stdout}"));
        assert_eq!(line.ends_with(" (background)"), !mark.is_empty(), "{line}");
    }
    assert!(stdout.contains("not traced: interrupts, softirqs and work queues: "), "{stdout}");
    let folded = std::fs::read_to_string(&folded).expect("written");
    assert!(folded.lines().any(|line| line.starts_with("background;uptime_proc_show ")));

    // The buffer is emptied, which loses the records of a worker that runs meanwhile.
    let words = ["linux-uml", "--words", "131072"];
    let Outcome { status, stdout, stderr } = trace(&words, &program, &["3000"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let line = stdout.lines().find_map(|line| line.strip_prefix("background: "));
    let line = line.unwrap_or_else(|| panic!("nothing in the background: {stdout}"));
    let records = line.split(' ').next().and_then(|records| records.parse::<u64>().ok());
    assert!(records.is_some_and(|records| records > 131_072), "{line}");
    assert!(line.ends_with(", truncated"), "{line}");
}

#[test]
fn trace_leaves_out_threads_with_a_filter() {
    let (_place, program) = compiled("FILTER");
    // SECCOMP_RET_KILL_PROCESS, _TRAP and _ERRNO for pidfd_open and pidfd_getfd.
    for action in ["0x80000000", "0x30000", "0x50016"] {
        for call in ["434", "438"] {
            let Outcome { status, stdout, stderr } =
                trace(&["linux-uml"], &program, &[action, call]);
            assert_eq!(status, Some(7), "{action} {call}: {stdout}{stderr}");
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
            let why = stdout.lines().find(|line| line.starts_with("not traced: thread "));
            let why = why.expect("a reason");
            assert!(why.contains("and 2 more: it has a seccomp(2) filter"), "{why}");
            assert!(why.contains("CONFIG_CHECKPOINT_RESTORE=y"), "{why}");
        }
    }
}

#[test]
fn trace_of_many_threads_names_the_cure_for_memory() {
    let (_place, program) = compiled("MANY_THREADS");
    let run = |words: &[&str]| {
        let Outcome { status, stdout, stderr } = trace(words, &program, &[]);
        assert_eq!(status, Some(7), "{stdout}{stderr}");
        let threads = stdout.lines().filter(|line| line.starts_with("process ")).count();
        let missing = stdout.lines().find(|line| line.starts_with("not traced: thread "));
        (threads, missing.map(str::to_owned))
    };
    let (threads, missing) = run(&["linux-uml"]);
    let missing = missing.expect("what is missing");
    assert!(threads < 61, "{threads}");
    assert!(missing.contains(&format!(" and {} more: ", 60 - threads)), "{threads}: {missing}");
    for cure in ["--words N", "--memory MIB"] {
        assert!(missing.contains(cure), "`{cure}` is not in: {missing}");
    }
    assert_eq!(run(&["linux-uml", "--words", "32768"]), (61, None));
    assert_eq!(run(&["linux-uml", "--memory", "1024"]), (61, None));
}

#[test]
fn trace_notices_ptrace() {
    let (_place, program) = compiled("PTRACE");
    let Outcome { status, stdout, stderr } = trace(&["linux-uml"], &program, &[]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("the command called ptrace(2): "), "{stdout}");
}
