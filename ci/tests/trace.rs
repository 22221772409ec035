//! Tests in a guest that the tracer does what docs/src/trace.md describes.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs.

mod common {
    pub mod example;
    pub mod outcome;
    pub mod trace;
}

use common::example::built;
use common::outcome::{Outcome, outcome};
use common::trace::trace;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A program that a test compiles.
struct Compiled {
    directory: tempfile::TempDir,
}

impl Compiled {
    fn new(text: &str) -> Compiled {
        let directory = tempfile::tempdir().expect("a directory");
        let source = directory.path().join("a.c");
        std::fs::write(&source, text).expect("a file");
        let mut compiler = Command::new("cc");
        compiler.arg("-pthread").arg(&source).arg("-o").arg(directory.path().join("program"));
        assert!(compiler.status().expect("a C compiler").success());
        Compiled { directory }
    }

    fn path(&self) -> String {
        self.directory.path().join("program").to_str().expect("UTF-8").to_owned()
    }
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
    let program = Compiled::new(text);
    let Outcome { status, stdout, stderr } =
        trace(&["linux-uml", "--carry", "/bin/true"], &program.path(), &[]);
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
    let without = trace(&["linux-uml-nokcov"], "ls", &[]);
    assert_eq!(without.status, Some(69), "{}", without.stderr);
    assert!(without.stderr.contains("this kernel has no kcov"), "{}", without.stderr);
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
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-ci"));
    let built = outcome(command.args(["build", target]));
    let kernel = built.stdout.split(' ').nth(1).expect("a path");
    Path::new(kernel).with_file_name("vmlinux")
}

#[test]
fn recordings_are_added_up_and_belong_to_their_kernel() {
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

    // The image of another build, and recordings of two kernels.
    let text = std::fs::read_to_string(&list).expect("a recording");
    let of = |key| text.lines().find_map(|line| line.strip_prefix(key)).expect("a line");
    let (release, build) = (of("kernel "), of("build "));
    let byte = |at: usize| u8::from_str_radix(&build[at..at + 2], 16).expect("hexadecimal");
    let id: Vec<u8> = (0..build.len()).step_by(2).map(byte).collect();
    let mut changed = std::fs::read(own).expect("an image");
    let places = changed.windows(id.len()).enumerate().filter(|(_, bytes)| *bytes == id);
    for at in places.map(|(at, _)| at).collect::<Vec<_>>() {
        changed[at] ^= 1;
    }
    let other = directory.path().join("vmlinux");
    std::fs::write(&other, changed).expect("a file");
    let other = other.to_str().expect("UTF-8");
    let refused = |files: &[&Path], words: &[&str], why: &[&str]| {
        let Outcome { status, stdout, stderr } = read(files, words);
        assert_eq!((status, stdout.as_str()), (Some(69), ""), "{stderr}");
        assert!(why.iter().all(|why| stderr.contains(why)), "{why:?} is not in: {stderr}");
    };
    refused(&[&list], &["--vmlinux", other], &[other, release, build, "is Linux "]);
    refused(&[&list], &["--vmlinux", "/bin/true"], &["/bin/true: "]);
    let foreign = directory.path().join("foreign");
    std::fs::write(&foreign, text.replace(build, "12ab")).expect("a file");
    refused(&[&list, &foreign], &[], &["foreign: is of Linux ", "(build id 12ab)", build]);
    for option in ["--raw", "--folded", "--vmlinux", "--lcov"] {
        let twice = read(&[&list], &[option, "/dev/null", option, "/dev/null"]);
        assert_eq!(twice.status, Some(2), "{}", twice.stderr);
        assert!(twice.stderr.contains(option) && twice.stdout.is_empty(), "{}", twice.stderr);
    }
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
    let text = r#"
        #include <fcntl.h>
        #include <linux/io_uring.h>
        #include <linux/vhost.h>
        #include <stdlib.h>
        #include <string.h>
        #include <sys/ioctl.h>
        #include <sys/mman.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static char text[64];
        int main(int count, char **words) {
            struct io_uring_params setup;
            struct io_uring_sqe *sqe;
            char *ring;
            int fd, vhost;
            memset(&setup, 0, sizeof setup);
            fd = syscall(SYS_io_uring_setup, 4, &setup);
            ring = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
            sqe = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
            if (fd < 0 || ring == MAP_FAILED || sqe == MAP_FAILED)
                return 1;
            sqe->opcode = IORING_OP_READ;
            sqe->flags = IOSQE_ASYNC;
            sqe->fd = open("/proc/uptime", O_RDONLY);
            sqe->addr = (unsigned long)text;
            sqe->len = sizeof text;
            for (int i = atoi(words[1]); i > 0; i--) {
                ++*(volatile unsigned *)(ring + setup.sq_off.tail);
                if (syscall(SYS_io_uring_enter, fd, 1, 1, IORING_ENTER_GETEVENTS, 0, 0) != 1)
                    return 2;
                ++*(volatile unsigned *)(ring + setup.cq_off.head);
            }
            if (!strchr(text, '.'))
                return 3;
            // Its worker gets something to do when the file is closed.
            vhost = open("/dev/vhost-net", O_RDWR);
            if (vhost < 0 || ioctl(vhost, VHOST_SET_OWNER))
                return 4;
            close(vhost);
            return 0;
        }"#;
    let program = Compiled::new(text);
    let directory = tempfile::tempdir().expect("a directory");
    let folded = directory.path().join("folded");
    let words = ["linux-uml", "--folded", folded.to_str().expect("UTF-8")];
    let Outcome { status, stdout, stderr } = trace(&words, &program.path(), &["1"]);
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
    let Outcome { status, stdout, stderr } = trace(&words, &program.path(), &["3000"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let line = stdout.lines().find_map(|line| line.strip_prefix("background: "));
    let line = line.unwrap_or_else(|| panic!("nothing in the background: {stdout}"));
    let records = line.split(' ').next().and_then(|records| records.parse::<u64>().ok());
    assert!(records.is_some_and(|records| records > 131_072), "{line}");
    assert!(line.ends_with(", truncated"), "{line}");
}

#[test]
fn trace_leaves_out_threads_with_a_filter() {
    let text = r#"
        #include <linux/filter.h>
        #include <linux/seccomp.h>
        #include <pthread.h>
        #include <stddef.h>
        #include <stdlib.h>
        #include <sys/prctl.h>
        #include <sys/syscall.h>
        #include <unistd.h>
        static void *work(void *unused) { return unused; }
        int main(int count, char **words) {
            struct sock_filter filter[] = {
                BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, strtoul(words[2], 0, 0), 0, 1),
                BPF_STMT(BPF_RET | BPF_K, strtoul(words[1], 0, 0)),
                BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
            };
            struct sock_fprog program = { 4, filter };
            pthread_t thread;
            if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
                prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
                return 1;
            for (int i = 0; i < 3; i++)
                if (pthread_create(&thread, 0, work, 0) || pthread_join(thread, 0))
                    return 2;
            return 7;
        }"#;
    let program = Compiled::new(text);
    // SECCOMP_RET_KILL_PROCESS, _TRAP and _ERRNO for pidfd_open and pidfd_getfd.
    for action in ["0x80000000", "0x30000", "0x50016"] {
        for call in ["434", "438"] {
            let Outcome { status, stdout, stderr } =
                trace(&["linux-uml"], &program.path(), &[action, call]);
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
    let text = r#"
        #include <pthread.h>
        #define THREADS 60
        static pthread_barrier_t all;
        static void *work(void *unused) {
            pthread_barrier_wait(&all);
            return unused;
        }
        int main(void) {
            pthread_t threads[THREADS];
            pthread_barrier_init(&all, 0, THREADS);
            for (int i = 0; i < THREADS; i++)
                if (pthread_create(&threads[i], 0, work, 0))
                    return 1;
            for (int i = 0; i < THREADS; i++)
                pthread_join(threads[i], 0);
            return 7;
        }"#;
    let program = Compiled::new(text);
    let run = |words: &[&str]| {
        let Outcome { status, stdout, stderr } = trace(words, &program.path(), &[]);
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
fn trace_notices_other_uses_of_kcov_and_ptrace() {
    let text = r#"
        #include <errno.h>
        #include <fcntl.h>
        #include <sys/ioctl.h>
        #include <sys/mman.h>
        #include <sys/ptrace.h>
        #include <unistd.h>
        int main(int count, char **words) {
            if (words[1][0] == 'p')
                return ptrace(PTRACE_TRACEME, 0, 0, 0) != -1 || errno != EPERM;
            int fd = open("/sys/kernel/debug/kcov", O_RDWR);
            if (fd < 0 || ioctl(fd, _IOR('c', 1, unsigned long), 512))
                return 2;
            if (mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED)
                return 3;
            return ioctl(fd, _IO('c', 100), 0) != -1 || errno != EBUSY;
        }"#;
    let program = Compiled::new(text);
    let Outcome { status, stdout, stderr } = trace(&["linux-uml"], &program.path(), &["kcov"]);
    assert_eq!(status, Some(0), "{stdout}{stderr}");
    let notice = "what the command, or another process, asked of kcov itself";
    assert!(stdout.contains(&format!("not traced: {notice}: ")), "{stdout}");
    assert!(stderr.contains(&format!("{notice} is not traced: ")), "{stderr}");
    assert!(!stdout.contains("ptrace(2)"), "{stdout}");
    let Outcome { status, stdout, stderr } = trace(&["linux-uml"], &program.path(), &["ptrace"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    assert!(stdout.contains("the command called ptrace(2): "), "{stdout}");
    assert!(!stdout.contains(notice), "{stdout}");
}
