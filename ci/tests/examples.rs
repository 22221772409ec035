//! Tests in a guest that the tracer and the examples of the crates `kcov` and `kcov-signal` do what
//! their pages describe.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs.

mod common {
    pub mod example;
    pub mod outcome;
    pub mod trace;
}

use common::example::{assert_addresses, built, example};
use common::outcome::Outcome;
use common::trace::trace;
use std::path::Path;
use std::process::Command;

/// Returns the output of a successful example.
#[track_caller]
fn lines_of(name: &str) -> Vec<String> {
    let Outcome { status, stdout, stderr } = example(&["linux-uml"], name, &[]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    stdout.lines().map(str::to_string).collect()
}

#[test]
fn syscall() {
    assert_addresses(&lines_of("syscall"));
}

#[test]
fn comparisons() {
    let lines = lines_of("comparisons");
    assert!(lines.iter().any(|line| line.ends_with("bits const")), "{lines:?}");
    // The kernel compares the letters of the path with a slash.
    assert!(lines.iter().any(|line| line.contains(" 0x2f ")), "{lines:?}");
    assert_eq!(lines.last().map(String::as_str), Some("/magic exists: false"));
}

/// Returns the first two numbers of a line.
fn numbers(line: &str) -> (u64, u64) {
    let mut numbers = line.split([' ', ',']).filter_map(|word| word.parse().ok());
    (numbers.next().expect("a number"), numbers.next().expect("a number"))
}

#[test]
fn threads() {
    let lines = lines_of("threads");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| numbers(line).1 > 0), "{lines:?}");
}

/// Returns all numbers of a line in their order.
fn all_numbers(line: &str) -> Vec<u64> {
    line.split(' ').filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn fork_fuzzer() {
    let lines = lines_of("fork_fuzzer");
    let [reached, learned] = lines.as_slice() else { panic!("{lines:?}") };
    let (reached, learned) = (all_numbers(reached), all_numbers(learned));
    assert!(reached[0] > 1000 && reached[1] > 5, "{lines:?}");
    assert!(learned[0] > 20 && learned[1] > 0, "{lines:?}");
}

#[test]
fn comparison_mutator() {
    let lines = lines_of("comparison_mutator");
    let last = lines.last().expect("lines");
    assert!(last.starts_with("found after "), "{lines:?}");
    // Length, level, type, and the process id, which only the kernel knows.
    let process = u32::try_from(*all_numbers(last).last().expect("its id")).expect("an id");
    let message = format!("1c000000000000000100000002000000{:08x}", process.swap_bytes());
    let found = &lines[lines.len() - 2];
    assert!(found.starts_with(&message) && found.ends_with(" ok"), "{lines:?}");
    assert!(lines[0].ends_with(" Invalid argument (os error 22)"), "{lines:?}");
}

#[test]
fn remote_collector() {
    let lines = lines_of("remote_collector");
    let [nothing, reading, making, restarts] = lines.as_slice() else { panic!("{lines:?}") };
    let [nothing, reading, making] = [nothing, reading, making].map(|line| all_numbers(line));
    // Each case has its own trace, with much that no other trace has.
    assert!(nothing[0] > 10 && nothing[1] < 40, "{lines:?}");
    assert!(reading[0] > nothing[0] && reading[1] > 50, "{lines:?}");
    assert!(making[0] > reading[0] && making[1] > 100, "{lines:?}");
    assert!(all_numbers(restarts)[0] > 1, "{lines:?}");
}

#[test]
fn tested_executor() {
    let lines = lines_of("tested_executor");
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("/: New("), "{lines:?}");
    // The last input equals the first.
    assert!(lines[3] == "/: Known" || lines[3].starts_with("/: New("), "{lines:?}");
}

#[test]
fn doctor_says_what_there_is_and_what_to_do() {
    let expected = "kcov: PC, CMP\n  program counters: yes\n  \
                    comparisons: yes\n  work in the background, by handles: yes\n";
    assert_eq!(lines_of("doctor").join("\n") + "\n", expected);
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
fn exec() {
    let traced = |script: &str| {
        let words = ["linux-uml", "--carry", "/bin/sh"];
        let Outcome { status, stdout, stderr } =
            example(&words, "exec", &["/bin/sh", "-c", script]);
        assert_eq!(status, Some(0), "{stdout}{stderr}");
        let ended = stdout.strip_prefix("exit status: 3: ").expect("the program's status");
        assert!(ended.ends_with(", Complete\n"), "{ended}");
        all_numbers(ended)[0]
    };
    let calls = "i=0; while [ $i -lt 50 ]; do echo >/dev/null; i=$((i + 1)); done";
    let starting = traced("exit 3");
    assert!(starting > 10_000, "{starting}");
    // Tracing goes on in the new program.
    let own = traced(&format!("{calls}; exit 3")) - starting;
    assert!(own > 20_000, "{own} of {starting}");
    // Its child is not traced, so only the fork is added.
    let of_child = traced(&format!("({calls}); exit 3")) - starting;
    assert!(of_child > 0 && of_child < own / 2, "{of_child}, not {own}, of {starting}");

    let refused = example(&["linux-uml"], "exec", &["/none"]);
    assert_eq!(refused.status, Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("NotFound"), "{}", refused.stderr);
}

#[test]
fn symbolize() {
    let built = Command::new(env!("CARGO_BIN_EXE_kcov-ci")).args(["build", "linux-uml"]).output();
    let built = String::from_utf8(built.expect("it starts").stdout).expect("UTF-8");
    // The kernel of User-Mode Linux is a program with symbols.
    let image = built.split(' ').nth(1).expect("its path");
    let words = ["linux-uml", "--carry", image];
    let Outcome { status, stdout, stderr } = example(&words, "symbolize", &[image]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let lines: Vec<_> = stdout.lines().map(|line| line.split_once(' ').expect("a name")).collect();
    let (pcs, names): (Vec<_>, Vec<_>) = lines.into_iter().unzip();
    assert_addresses(&pcs);
    assert!(names.contains(&"ksys_read") && names.contains(&"read_zero"), "{stdout}");
    assert!(!names.contains(&"??"), "{stdout}");
}

#[test]
fn record() {
    let lines = lines_of("record");
    let kinds = ["files", "io-uring", "sockets", "processes", "mixed"];
    assert_eq!(lines.len(), kinds.len());
    for (line, kind) in lines.iter().zip(kinds) {
        let packed = line.strip_prefix(&format!("trace {kind} ")).expect("its kind");
        assert!(packed.len() > 1000 && packed.bytes().all(|digit| digit.is_ascii_hexdigit()));
    }
}

#[test]
fn cost() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kcov/signal/examples/cost.c");
    let in_c = built().join("cost-c");
    let compiled =
        Command::new("cc").args(["-O2", "-static", "-o"]).args([&in_c, &source]).status();
    assert!(compiled.expect("cc starts").success());
    let in_c = in_c.to_str().expect("UTF-8");
    let words = ["linux-uml", "--carry", in_c];
    let Outcome { status, stdout, stderr } = example(&words, "cost", &[in_c]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let lines: Vec<&str> = stdout.lines().collect();
    let (pcs, pcs_in_c) = numbers_of_pcs(lines[0]);
    assert!(pcs > 100 && pcs == pcs_in_c, "{stdout}");
    // The best of many rounds. Without a round in which everything was known there would be no
    // number.
    let ratios = lines.iter().find_map(|line| line.strip_prefix("ratio")).expect("ratios");
    let ratios: Vec<f64> = ratios.split_whitespace().map(|n| n.parse().unwrap()).collect();
    assert!(ratios.len() == 2 && ratios.iter().all(|ratio| ratio.is_finite()), "{stdout}");
}

/// Returns the call's number of PCs, and the C program's count.
fn numbers_of_pcs(line: &str) -> (u64, u64) {
    let (_, numbers) = line.split_once(": ").expect("numbers");
    let (ours, in_c) = numbers.split_once(" PCs, ").expect("two numbers");
    (ours.parse().expect("a number"), in_c.trim_end_matches(" in C").parse().expect("a number"))
}

#[test]
fn unique_modes_on_a_kernel_that_was_not_patched() {
    let Outcome { status, stdout, stderr } = example(&["linux-uml"], "unique_modes", &["0"]);
    assert_eq!(status, Some(0), "{stderr}");
    let lines: Vec<_> = stdout.lines().collect();
    assert_eq!(lines[0], "The mode is: 0");
    assert_addresses(&lines[1..]);
    for mode in ["2", "4", "6", "8"] {
        let refused = example(&["linux-uml"], "unique_modes", &[mode]);
        assert_eq!(refused.status, Some(1), "{}", refused.stdout);
        assert!(refused.stderr.contains("does not have that mode"), "{}", refused.stderr);
    }
}

#[test]
fn call_tree_on_a_kernel_that_was_not_patched() {
    let refused = example(&["linux-uml"], "call_tree", &[]);
    assert_eq!(refused.status, Some(1), "{}", refused.stdout);
    assert!(refused.stderr.contains("no extended records"), "{}", refused.stderr);
}

#[test]
fn trace_of_a_program_of_the_host() {
    let directory = tempfile::tempdir().expect("a directory");
    let raw = directory.path().join("raw");
    let drcov = directory.path().join("drcov");
    let folded = directory.path().join("folded");
    let [raw_name, drcov_name, folded_name] =
        [&raw, &drcov, &folded].map(|path| path.to_str().expect("UTF-8"));
    let words = ["linux-uml", "--raw", raw_name, "--drcov", drcov_name, "--folded", folded_name];
    let Outcome { status, stdout, stderr } = trace(&words, "ls", &["/"]);
    assert_eq!(status, Some(0), "{stderr}");
    // Its own output, then the kernel code it executed.
    assert!(stdout.lines().any(|line| line == "proc"), "{stdout}");
    assert!(stdout.contains(" ls: ") && stdout.contains(" functions of Linux 7."), "{stdout}");
    for function in ["iterate_dir", "execve", "__handle_mm_fault"] {
        assert!(stdout.contains(function), "`{function}` is not in: {stdout}");
    }
    assert!(std::fs::read(&drcov).expect("written").starts_with(b"DRCOV VERSION: 2\n"));
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
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (directory.path().join("a.c"), directory.path().join("program"));
    let text = r#"
        #define _GNU_SOURCE
        #include <pthread.h>
        #include <sys/wait.h>
        #include <unistd.h>
        static void *work(void *exec) {
            pthread_setname_np(pthread_self(), "a worker");
            if (exec)
                execl("/bin/true", "true", (char *)0);
            return 0;
        }
        int main(void) {
            pthread_t thread;
            pthread_create(&thread, 0, work, 0);
            pthread_join(thread, 0);
            if (fork() == 0) {
                pthread_create(&thread, 0, work, "");
                pause();
            }
            wait(0);
            return 7;
        }"#;
    std::fs::write(&source, text).expect("a file");
    let compiler = Command::new("cc").arg("-pthread").arg(&source).arg("-o").arg(&program).status();
    assert!(compiler.expect("a C compiler").success());
    let program = program.to_str().expect("UTF-8");
    let Outcome { status, stdout, stderr } =
        trace(&["linux-uml", "--carry", "/bin/true"], program, &[]);
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

#[test]
fn trace_empties_buffers_before_they_are_full() {
    let many = "i=0; while [ $i -lt 5000 ]; do echo >/dev/null; i=$((i + 1)); done";
    let Outcome { status, stdout, stderr } =
        trace(&["linux-uml", "--words", "524288"], "sh", &["-c", many]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let line = stdout.lines().find(|line| line.starts_with("process ")).expect("a process");
    let records = line.split(": ").nth(1).and_then(|rest| rest.split(' ').next());
    let records: u64 = records.and_then(|records| records.parse().ok()).expect("a number");
    assert!(records > 524_288, "{line}");
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
    let without = trace(&["linux-uml-nokcov"], "ls", &[]);
    assert_eq!(without.status, Some(69), "{}", without.stderr);
    assert!(without.stderr.contains("this kernel has no kcov"), "{}", without.stderr);
    let lines = trace(&["linux-uml", "--lcov", "/dev/null", "--quiet"], "ls", &[]);
    assert_eq!(lines.status, Some(69), "{}", lines.stderr);
    assert!(lines.stderr.contains("linux-uml-dwarf"), "{}", lines.stderr);
}
