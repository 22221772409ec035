//! Wrong command lines: one line on standard error says why, the exit status is
//! 2, and nothing is built or booted.

mod common;

use common::{Outcome, Place, VM, assert_refused, outcome};
use kcov_vm::target::Targets;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

impl Place {
    fn run(&self, words: &[&str]) -> (Option<i32>, String, String) {
        let Outcome { status, stdout, stderr } = outcome(&mut self.command(words));
        (status, stdout, stderr)
    }

    #[track_caller]
    fn refuses(&self, words: &[&str], expected: &[&str]) {
        assert_refused(&mut self.command(words), 2, expected);
    }
}

#[test]
fn unknown_targets() {
    let vm = Place::new();
    vm.refuses(&["build", "linux-99"], &["no target `linux-99`", "linux-uml"]);
    vm.refuses(&["test", "linux-uml", "linux-99"], &["no target `linux-99`"]);
    vm.refuses(&["exec", "linux-99", "--", "/bin/true"], &["no target `linux-99`"]);
}

#[test]
fn more_processors_than_the_kernel_can_use() {
    let words = ["exec", "linux-uml", "--smp", "2", "--", "true"];
    Place::new().refuses(&words, &["--smp: the kernel of linux-uml is for one processor"]);
}

#[test]
fn missing_sources_and_kernels() {
    let vm = Place::new();
    vm.refuses(&["build", "--source", "/none/tree"], &["--source /none/tree", "No such file"]);
    let empty = vm.path().to_str().expect("UTF-8");
    vm.refuses(&["build", "--source", empty], &["not a kernel source tree"]);
    let file = vm.write("own", "# fine\n\nCONFIG_X=y\nCONFIG_Y\n");
    let file = file.to_str().expect("UTF-8");
    vm.refuses(&["build", "--config", file], &["--config ", "own: `CONFIG_Y` is not a line"]);
    vm.refuses(&["key", "linux-uml", "--config", "none"], &["--config none: No such file"]);
    let netbsd = ["exec", "netbsd", "--config", "fuse", "--", "true"];
    vm.refuses(&netbsd, &["--config: works only for Linux targets, not netbsd"]);
    vm.refuses(&["test", "--kernel", "/none/vmlinux"], &["--kernel /none/vmlinux"]);
    let mut by_variable = vm.command(&["test", "netbsd"]);
    by_variable.env("KCOV_VM_NETBSD_KERNEL", "/none/netbsd");
    assert_refused(&mut by_variable, 2, &["KCOV_VM_NETBSD_KERNEL /none/netbsd"]);
}

/// The machine's only mirror does not answer.
#[test]
fn package_lists_that_cannot_be_fetched() {
    let vm = Place::new();
    let list = vm.write("sources.list", "deb http://127.0.0.1:9/debian trixie main\n");
    // The state after an update. Before one, apt does not list mirrors.
    let lists = "lists/127.0.0.1:9_debian_dists_trixie";
    let release = "Origin: Debian\nCodename: trixie\nComponents: main\nArchitectures: amd64\nSHA256:\n \
                   e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 0 \
                   main/binary-amd64/Packages\n";
    vm.write(&format!("{lists}_Release"), release);
    vm.write(&format!("{lists}_main_binary-amd64_Packages"), "");
    vm.write("lists/partial/empty", "");
    let config = vm.write(
        "apt.conf",
        format!(
            "Dir::Etc::sourcelist \"{}\";\nDir::Etc::sourceparts \"/dev/null\";\n\
             Dir::State::lists \"{}\";\nAcquire::Retries \"0\";\nAPT::Architecture \"amd64\";\n",
            list.display(),
            vm.path().join("lists").display()
        ),
    );
    let build = |words: &[&str]| {
        let output = vm.command(words).env("APT_CONFIG", &config).output().expect("it starts");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let why = "the package lists of trixie-backports cannot be fetched: apt-get: E: ";
    let (status, stderr) = build(&["key", "linux-uml"]);
    assert_eq!(status, Some(69), "{stderr}");
    assert!(stderr.contains(&format!("kcov-vm: linux-uml: source: {why}")), "{stderr}");
    assert!(stderr.contains("give a kernel's source with --source"), "{stderr}");

    // The earlier result is used, and a message says so.
    let known = r#"{"name":"linux-source-7.3","version":"7.3.4-1","suite":"trixie-backports"}"#;
    vm.write("cache/sources/linux-source-7@trixie-backports.json", known);
    let (status, stderr) = build(&["build", "linux-uml"]);
    assert_eq!(status, Some(69), "{stderr}");
    assert!(
        stderr.contains(&format!("using linux-source-7.3 7.3.4-1 as before: {why}")),
        "{stderr}"
    );
}

#[test]
fn a_tree_that_was_built_in() {
    let vm = Place::new();
    for name in ["Kbuild", ".config"] {
        vm.write(name, "");
    }
    let tree = vm.path().to_str().expect("UTF-8");
    vm.refuses(&["build", "--source", tree], &["make mrproper"]);
}

#[test]
fn an_unusable_cache() {
    let vm = Place::new();
    let file = vm.write("file", "");
    let below = file.join("cache");
    let below = below.to_str().expect("UTF-8");
    vm.refuses(&["list", "--cache", below], &["cannot use", below, "--cache DIR"]);
}

/// `exec` and `trace` report immediately, in one line, why a program cannot
/// start.
#[test]
fn programs_that_cannot_start() {
    let vm = Place::new();
    let script = |name: &str, text: &[u8]| {
        let path = vm.write(name, text);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("permissions");
        path.to_str().expect("UTF-8").to_owned()
    };
    let refused = |program: &str, why: &str| {
        for command in ["exec", "trace", "shell"] {
            vm.refuses(&[command, "linux-uml", "--", program], &[program, why]);
        }
    };
    refused("/none/program", "No such file or directory");
    refused("no-such-program", "there is no such program in PATH");
    refused("/usr", "is a directory, not a program");
    refused(
        &script("lost", b"#!/none/sh -e\n"),
        "its interpreter cannot run: /none/sh: No such file",
    );
    refused(
        &script("gone", b"#!/usr/bin/env none-such\n"),
        "its interpreter cannot run: none-such: there is no such program in PATH; install it",
    );
    let endless = vm.path().join("endless");
    script("endless", format!("#!{}\n", endless.display()).as_bytes());
    refused(endless.to_str().expect("UTF-8"), "more than five scripts interpret each other");
    refused(&script("text", b"echo\n"), "is not an ELF program");
    let mut small = [0; 52];
    small[..7].copy_from_slice(b"\x7fELF\x01\x01\x01");
    // EM_386
    small[18] = 3;
    let why = "is a 32-bit program, which linux-uml cannot run; use linux-uml-i386 or linux-7-i386";
    vm.refuses(&["exec", "linux-uml", "--", &script("small", &small)], &[why]);
    let plain = vm.write("plain", "");
    refused(plain.to_str().expect("UTF-8"), "is not executable");
}

#[test]
fn reports_that_cannot_be_written() {
    Place::new().refuses(&["test", "--report", "/none/report"], &["--report /none/report"]);
}

#[test]
fn output_that_is_lost_is_a_failure() {
    let vm = Place::new();
    let list = |stdout: Stdio| {
        let mut list = vm.command(&["list"]);
        let mut child = list.stdout(stdout).stderr(Stdio::piped()).spawn().expect("kcov-vm starts");
        // Nothing reads it.
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        (output.status.code(), String::from_utf8(output.stderr).expect("UTF-8"))
    };
    let full = fs::File::options().write(true).open("/dev/full").expect("a device");
    let (status, stderr) = list(full.into());
    assert_eq!(status, Some(69), "{stderr}");
    let why = "kcov-vm: output: cannot write to standard output: No space left on device";
    assert!(stderr.starts_with(why), "{stderr}");
    // A reader that closes a pipe wanted no more.
    assert_eq!(list(Stdio::piped()), (Some(0), String::new()));
}

#[test]
fn help_fits_a_terminal_and_names_the_program() {
    let vm = Place::new();
    let (status, stdout, _) = vm.run(&["--version"]);
    assert_eq!(status, Some(0));
    assert!(stdout.starts_with("kcov-vm "), "{stdout}");
    let commands = ["test", "exec", "trace", "runner", "lockstep", "drift", "mutants"];
    for command in commands.map(Some).into_iter().chain([None]) {
        let words: Vec<_> = command.into_iter().chain(["--help"]).collect();
        let (status, stdout, _) = vm.run(&words);
        assert_eq!(status, Some(0), "{command:?}");
        let wide: Vec<_> = stdout.lines().filter(|line| line.chars().count() > 80).collect();
        assert!(wide.is_empty(), "{command:?}: {wide:?}");
    }
}

#[test]
fn list_needs_nothing_but_the_cache() {
    let (status, stdout, stderr) = Place::new().run(&["list"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    let uml = stdout.lines().find(|line| line.starts_with("linux-uml*")).expect("a default");
    assert!(uml.contains("linux-source-7") && uml.ends_with("not built"), "{uml}");
    assert!(stdout.lines().all(|line| line.len() <= 80), "{stdout}");
}

#[test]
fn env_is_for_a_shell() {
    let vm = Place::new();
    let (status, stdout, stderr) = vm.run(&["env", "linux-uml"]);
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    assert!(stdout.starts_with("export CARGO_TARGET_"), "{stdout}");
    assert!(stdout.ends_with(&format!("_RUNNER='{VM} runner linux-uml'\n")), "{stdout}");
    // Its options are the runner's.
    let file = vm.write("own", "CONFIG_X=y\n");
    let mut command = vm.command(&["env", "--config=./own", "linux-uml", "--memory", "512"]);
    let said = command.current_dir(vm.path()).output().expect("kcov-vm starts");
    let words = format!("--config={} --memory 512'\n", file.display());
    assert!(said.stdout.ends_with(words.as_bytes()), "{said:?}");
    let (status, stdout, stderr) = vm.run(&["env", "netbsd"]);
    assert_eq!((status, stdout.as_str()), (Some(69), ""), "{stderr}");
    assert!(stderr.contains("--sysroot DIR"), "{stderr}");
}

#[test]
fn runner_says_what_is_wrong_with_its_own_words() {
    let vm = Place::new();
    let runner = |options: &[&str], words: &[&str]| {
        vm.refuses(&[&["runner", "linux-uml"], options, &[VM]].concat(), words);
    };
    vm.refuses(&["runner", "linux-99", VM], &["no target `linux-99`"]);
    vm.refuses(&["runner", "linux-uml", "--bogus"], &["runner --bogus: no such option"]);
    vm.refuses(&["runner", "linux-uml", "--bogus", VM], &["runner --bogus: no such option"]);
    runner(&["--accel", "kvm"], &["--accel: works only for QEMU targets, not linux-uml"]);
    runner(&["--env", "KCOV_VM_NOT_SET"], &["--env KCOV_VM_NOT_SET", "not set"]);
    runner(&["--env", "=1"], &["--env =1", "a variable has a name"]);
    runner(&["--carry", "/none/there"], &["--carry /none/there", "No such file"]);
    runner(&["--carry", "/proc/version"], &["--carry /proc/version", "its own /proc"]);
    runner(&["--scratch", "/dev/null/below"], &["--scratch /dev/null/below"]);
    let (status, _, stderr) = vm.run(&["runner", "netbsd", VM]);
    assert_eq!(status, Some(69), "{stderr}");
    assert!(stderr.contains("netbsd: not run: needs --kernel FILE"), "{stderr}");
    let (status, _, stderr) = vm.run(&["runner", "linux-uml"]);
    assert_eq!(status, Some(2), "{stderr}");
}

/// The user did not type the program that cargo gives to the runner.
#[test]
fn runner_has_no_verdict_on_what_no_guest_can_run() {
    let vm = Place::new();
    let program = vm.path().join("program");
    let source = vm.write("source.c", "int main(void) { return 0; }");
    let mut compiler = Command::new("cc");
    compiler.arg(source).arg("-Wl,--dynamic-linker=/none/ld.so").arg("-o").arg(&program);
    assert!(compiler.status().expect("a C compiler").success());
    let program = program.to_str().expect("UTF-8");
    for (program, words) in [
        ("/none/program", &["linux-uml: image: /none/program: No such file"][..]),
        (program, &["needs the loader /none/ld.so", "crt-static"]),
    ] {
        assert_refused(&mut vm.command(&["runner", "linux-uml", program]), 69, words);
    }
}

/// A new target must also be in the continuous integration.
#[test]
fn the_workflows_have_all_linux_targets() {
    let mut named = Vec::new();
    for name in ["linux.yml", "weekly.yml", "architectures.yml"] {
        let workflow =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../.github/workflows").join(name);
        let workflow = fs::read_to_string(workflow).expect("the workflow");
        let (_, matrix) = workflow.split_once("        target:\n").expect("a matrix");
        let targets = matrix.lines().map_while(|line| line.strip_prefix("          - "));
        named.extend(targets.map(String::from));
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/targets.toml");
    let names = Targets::load(&file).expect("valid").all.into_iter().map(|target| target.name);
    let mut names: Vec<_> = names.filter(|name| name.starts_with("linux")).collect();
    named.sort();
    names.sort();
    assert_eq!(named, names);
}
