//! Tests in a guest that the examples of the crates `kcov` and `kcov-signal` do what their pages
//! describe.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs.

mod common;

use common::{Outcome, assert_addresses, example, outcome, vm};

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

#[test]
fn threads() {
    let lines = lines_of("threads");
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines.iter().all(|line| all_numbers(line)[1] > 0), "{lines:?}");
}

/// Returns all numbers of a line in their order.
fn all_numbers(line: &str) -> Vec<u64> {
    line.split([' ', ',']).filter_map(|word| word.parse().ok()).collect()
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
fn doctor_says_what_there_is() {
    let expected = "kcov: PC, CMP\n  program counters: yes\n  \
                    comparisons: yes\n  work in the background, by handles: yes\n";
    assert_eq!(lines_of("doctor").join("\n") + "\n", expected);
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
    let built = outcome(&mut vm(&["build", "linux-uml"])).stdout;
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
    let Outcome { status, stdout, stderr } = example(&["linux-uml"], "cost", &["2"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let call = stdout.lines().find(|line| line.starts_with("| statx, procfs | "));
    let call: Vec<_> = call.unwrap_or_else(|| panic!("{stdout}")).split(" | ").collect();
    for records in [call[3], call[5].trim_end_matches(" |")] {
        assert!(records.parse::<u64>().expect("a number") > 100, "{stdout}");
    }
    let alone = example(&["linux-uml"], "cost", &["alone", "2"]);
    let rows = alone.stdout.lines().filter(|line| line.starts_with('|'));
    assert_eq!(rows.count(), 14, "{}{}", alone.stdout, alone.stderr);
    let program = example(&["linux-uml"], "cost", &["program", "1", "/bin/sh", "-c", ":"]);
    let row = program.stdout.lines().find_map(|line| line.strip_prefix("| `/bin/sh -c :` | "));
    let row: Vec<_> = row.unwrap_or_else(|| panic!("{}", program.stderr)).split(" | ").collect();
    assert!(row[2].parse::<u64>().expect("a number") > 1000, "{row:?}");
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
