//! Commands of the runner, programs to run, and what the tests expect.
#![allow(dead_code, reason = "each file of tests needs a part")]

use kcov_vm::arch::Arch;
use kcov_vm::toolchain::{Recipe, target_directory};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use std::fmt::Debug;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir, tempdir_in};

/// The runner's program.
pub const VM: &str = env!("CARGO_BIN_EXE_kcov-ci");

/// A command's exit status and output.
pub struct Outcome {
    pub status: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// A command of the runner.
pub fn vm(words: &[&str]) -> Command {
    let mut command = Command::new(VM);
    command.args(words);
    command
}

pub fn outcome(command: &mut Command) -> Outcome {
    let Output { status, stdout, stderr } = command.output().expect("it starts");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    // The first build is announced, and so is waiting for it.
    let announced = |line: &str| line.starts_with("build ") || line.starts_with("waiting for ");
    let matters = |line: &&str| !announced(line);
    let stderr = text(stderr).split_inclusive('\n').filter(matters).collect();
    Outcome { status: status.code(), stdout: text(stdout), stderr }
}

/// Runs a command through `trace`; `words` are the target and its options.
pub fn trace(words: &[&str], program: &str, arguments: &[&str]) -> Outcome {
    outcome(vm(&["trace"]).args(words).arg("--").arg(program).args(arguments))
}

/// Asserts that one line on standard error says why.
#[track_caller]
pub fn assert_refused(command: &mut Command, status: i32, words: &[&str]) {
    let Outcome { status: found, stdout, stderr } = outcome(command);
    assert_eq!((found, stdout.as_str()), (Some(status), ""), "{command:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{command:?}: {stderr}");
    for word in words {
        assert!(stderr.contains(word), "{command:?}: `{word}` is not in: {stderr}");
    }
}

/// Asserts exit status 69 and these words on standard error.
#[track_caller]
pub fn assert_no_verdict(outcome: &Outcome, words: &[&str]) {
    assert_eq!(outcome.status, Some(69), "{}", outcome.stderr);
    for word in words {
        assert!(outcome.stderr.contains(word), "`{word}` is not in: {}", outcome.stderr);
    }
}

/// A test's own directory, also for the runner's cache, so that the user's files stay untouched.
pub struct Place {
    path: PathBuf,
    _directory: TempDir,
}

impl Place {
    pub fn new() -> Self {
        Self::of(tempdir())
    }

    /// A directory below cargo's target directory, because `/tmp` may be mounted noexec.
    pub fn for_programs() -> Self {
        Self::of(tempdir_in(env!("CARGO_TARGET_TMPDIR")))
    }

    fn of(directory: std::io::Result<TempDir>) -> Self {
        let directory = directory.expect("a directory");
        let path = directory.path().canonicalize().expect("its path");
        Self { path, _directory: directory }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a file, as text.
    pub fn file(&self, name: &str) -> String {
        self.path().join(name).to_str().expect("UTF-8").into()
    }

    pub fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    /// A command of the runner with its cache here.
    pub fn command(&self, words: &[&str]) -> Command {
        let mut command = vm(words);
        command.env("KCOV_VM_CACHE", self.path().join("cache"));
        for name in ["KCOV_VM_NETBSD_KERNEL", "KCOV_VM_NETBSD_SYSROOT"] {
            command.env_remove(name);
        }
        command
    }

    /// Compiles a library whose soname is its file name.
    pub fn library(&self, name: &str, text: &str, words: &[&str]) {
        let soname = format!("-Wl,-soname,{}", name.rsplit('/').next().unwrap_or(name));
        self.compile(name, text, &[&["-shared", "-fPIC", &soname], words].concat());
    }

    /// Compiles a program of `programs.c`.
    pub fn program(&self, name: &str, which: &str, words: &[&str]) {
        let which = format!("-D{which}");
        self.compile(name, include_str!("../programs.c"), &[&[&*which], words].concat());
    }

    fn compile(&self, name: &str, text: &str, words: &[&str]) {
        let source = self.write(&format!("{name}.c"), text);
        let mut gcc = Command::new("gcc");
        gcc.args(["-Wall", "-Wl,--allow-shlib-undefined", "-o"]).arg(self.path().join(name));
        let output = gcc.arg(source).args(words).output().expect("gcc starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }
}

/// The program that misbehaves on request.
pub fn fixture() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
        let program = ["kcov-vm-guest", "kcov-vm-fixture"];
        let recipe = Recipe::linux(Arch::host().triple).expect("a host triple");
        recipe.build(workspace, program, &target_directory(workspace)).expect("the fixture builds")
    })
}

/// The directory of the workspace's programs, from the same build as this test.
pub fn built() -> &'static Path {
    static DIRECTORY: OnceLock<PathBuf> = OnceLock::new();
    DIRECTORY.get_or_init(|| {
        let mut cargo = Command::new(env!("CARGO"));
        cargo.current_dir(env!("CARGO_MANIFEST_DIR")).args(["build", "--quiet"]);
        cargo.args(["-p", "kcov", "-p", "kcov-signal", "--examples", "-p", "kcov-trace", "--bins"]);
        assert!(cargo.status().expect("cargo starts").success());
        let own = std::env::current_exe().expect("this program");
        own.ancestors().nth(2).expect("the profile's directory").to_path_buf()
    })
}

/// Runs an example of the published crates through `exec`; `words` are the target and its options.
pub fn example(words: &[&str], name: &str, arguments: &[&str]) -> Outcome {
    let mut command = vm(&["exec"]);
    command.args(words).arg("--").arg(built().join("examples").join(name));
    outcome(command.args(arguments))
}

/// Asserts that each line is the address of an instruction in the kernel.
#[track_caller]
pub fn assert_addresses(lines: &[impl AsRef<str> + Debug]) {
    assert!(lines.len() > 10, "{lines:?}");
    for line in lines.iter().map(AsRef::as_ref) {
        let digits = line.strip_prefix("0x").expect("a prefix");
        assert!(u64::from_str_radix(digits, 16).is_ok_and(|pc| pc > 0x6000_0000), "{line}");
    }
}

/// A crate outside this workspace. cargo runs its tests in a guest as docs/src/test-your-fuzzer.md
/// describes.
fn crate_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/fuzzer")
}

/// Runs `cargo test` in the crate with only the runner configured.
pub fn cargo_test(options: &str, words: &[&str]) -> Outcome {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.arg("test").args(words).current_dir(crate_directory());
    let runner = format!("{VM} runner linux-uml {options}");
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    cargo.env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("fuzzer"));
    outcome(&mut cargo)
}

/// Returns the crate's test program, built once.
pub fn test_program() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| {
        let built = cargo_test("", &["--no-run", "--test", "coverage"]);
        assert_eq!(built.status, Some(0), "{}", built.stderr);
        let (_, rest) = built.stderr.rsplit_once('(').expect("cargo names the program");
        rest.trim_end().trim_end_matches(')').into()
    })
}

/// Starts the runner as cargo and nextest do; `words` are the target and its options.
pub fn runner(words: &[&str], program: &Path, arguments: &[&str]) -> Outcome {
    let mut command = vm(&["runner"]);
    command.args(words).arg(program).args(arguments);
    outcome(command.current_dir(crate_directory()).env("CARGO_MANIFEST_DIR", crate_directory()))
}

/// The number, the parent and the group of each process that has not ended.
fn processes() -> Vec<[u32; 3]> {
    let entries = fs::read_dir("/proc").expect("/proc").flatten();
    let stat = entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok());
    let process = |stat: String| {
        let id = stat.split(' ').next()?.parse().ok()?;
        // The name may contain anything.
        let mut fields = stat.rsplit_once(") ")?.1.split(' ');
        let is_alive = fields.next()? != "Z";
        let mut number = || fields.next()?.parse().ok();
        is_alive.then_some([id, number()?, number()?])
    };
    stat.filter_map(process).collect()
}

/// The process group of a runner's guest, as soon as there is one.
fn guest(runner: &mut Child) -> u32 {
    let id = runner.id();
    let is_guest = |[it, parent, group]: &[u32; 3]| *parent == id && group == it;
    loop {
        if let Some(guest) = processes().into_iter().find(is_guest) {
            return guest[0];
        }
        assert!(runner.try_wait().expect("a child").is_none(), "the runner has ended");
        sleep(Duration::from_millis(10));
    }
}

/// Starts a runner whose guest does not end. Sends each signal to one. A shell may have started the
/// tests with SIGINT ignored.
#[track_caller]
pub fn assert_ends_with_its_runner(command: &mut Command, mut begin: impl FnMut(&mut Child)) {
    for signal in [Signal::KILL, Signal::TERM] {
        let mut runner = command.stdout(Stdio::piped()).spawn().expect("it starts");
        let group = guest(&mut runner);
        begin(&mut runner);
        kill_process(Pid::from_child(&runner), signal).expect("it runs");
        runner.wait().expect("a child");
        let late = Instant::now() + Duration::from_secs(60);
        while processes().iter().any(|it| it[2] == group) {
            if Instant::now() > late {
                let group = Pid::from_raw(group as i32).expect("a group");
                let _ = kill_process_group(group, Signal::KILL);
                panic!("after {signal:?} the guest goes on");
            }
            sleep(Duration::from_millis(10));
        }
    }
}
