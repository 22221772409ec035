//! The NetBSD lane without NetBSD: refused files and, with the feature
//! `guest-tests`, the handling of a guest's output.

mod elf;
#[cfg(feature = "guest-tests")]
mod guest;

#[path = "../common"]
mod common {
    #[cfg(feature = "guest-tests")]
    pub mod ended;
    pub mod outcome;
    pub mod vm;
}

use common::vm::{Vm, assert_refused};
use elf::{KERNEL, elf};
use std::path::{Path, PathBuf};

impl Vm {
    fn kernel(&self) -> PathBuf {
        self.write("netbsd", elf(KERNEL, &[]))
    }

    /// Makes a program that a NetBSD guest could run.
    fn program(&self) -> PathBuf {
        self.write("program", elf(0x40_0000, &[]))
    }

    fn sysroot(&self) -> PathBuf {
        for name in
            ["crt0.o", "crti.o", "crtn.o", "libc.a", "libm.a", "libpthread.a", "libgcc_eh.a"]
        {
            self.write(&format!("sysroot/usr/lib/{name}"), b"");
        }
        self.path().join("sysroot")
    }

    /// Tries to execute a program in a guest, which must be refused first.
    #[track_caller]
    fn refuses(&self, status: i32, options: &[(&str, &Path)], program: &Path, words: &[&str]) {
        let mut command = self.command(&["exec", "netbsd"]);
        for (option, value) in options {
            command.arg(option).arg(value);
        }
        assert_refused(command.arg("--").arg(program), status, words);
    }
}

#[test]
fn what_only_the_user_has_is_asked_for() {
    let vm = Vm::new();
    let (program, kernel, sysroot) = (vm.program(), vm.kernel(), vm.sysroot());
    let page = "docs/src/netbsd-lane.md";
    vm.refuses(69, &[], &program, &["netbsd: not run", "--kernel FILE", "--sysroot DIR", page]);
    vm.refuses(69, &[("--kernel", &kernel)], &program, &["--sysroot DIR", page]);
    vm.refuses(69, &[("--sysroot", &sysroot)], &program, &["--kernel FILE", page]);
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page).is_file());
    assert_refused(&mut vm.command(&["build", "netbsd"]), 69, &["netbsd: not run", page]);
}

#[test]
fn a_test_without_a_kernel_is_not_run_and_no_pass() {
    let vm = Vm::new();
    let output = vm.command(&["test", "netbsd"]).output().expect("kcov-vm starts");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(69), "{stdout}");
    assert!(stdout.contains("netbsd: not run: needs --kernel FILE"), "{stdout}");
    assert!(!stdout.contains("passed"), "{stdout}");
}

#[test]
fn the_command_line_is_checked() {
    let vm = Vm::new();
    let (program, kernel, sysroot) = (vm.program(), vm.kernel(), vm.sysroot());
    let given: [(&str, &Path); 2] = [("--kernel", &kernel), ("--sysroot", &sysroot)];
    let none = Path::new("/none");
    vm.refuses(2, &[("--sysroot", none)], &program, &["--sysroot /none"]);
    vm.refuses(2, &[("--netbsd-kernel", none)], &program, &["--netbsd-kernel /none"]);
    let with = |option, value| [&given[..], &[(option, Path::new(value))]].concat();
    vm.refuses(2, &with("--abi", "8"), &program, &["--abi 8: netbsd has 10, 9"]);
    vm.refuses(2, &with("--declare", "a b"), &program, &["--declare a b"]);
    // A program for another system. The message says how to build it for this
    // one.
    let own = Path::new(env!("CARGO_BIN_EXE_kcov-ci"));
    let words = ["is not a program for NetBSD", "kcov-vm env netbsd"];
    vm.refuses(2, &given, own, &words);
}

#[test]
fn checks_are_those_of_the_system() {
    let vm = Vm::new();
    let (kernel, sysroot) = (vm.kernel(), vm.sysroot());
    let test = |id: &str| {
        let mut command = vm.command(&["test", "netbsd", "--check", id, "--kernel"]);
        command.arg(&kernel).arg("--sysroot").arg(&sysroot);
        command
    };
    // A check for Linux only.
    let words = ["--check enable.mode-beyond-32-bits-is-refused: no such check or topic on NetBSD"];
    assert_refused(&mut test("enable.mode-beyond-32-bits-is-refused"), 2, &words);
    assert_refused(&mut test("enable.mode-comes-frst"), 2, &["similar: enable.mode-comes-first"]);
    // A check for NetBSD only.
    let mut linux = vm.command(&["test", "linux-uml", "--check", "enable.mode-comes-first"]);
    assert_refused(&mut linux, 2, &["enable.mode-comes-first: no such check or topic on Linux"]);
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let vm = Vm::new();
    let sysroot = vm.sysroot();
    let unused = |words: &[&str], what: &[&str]| assert_refused(&mut vm.command(words), 2, what);
    let sysroot = sysroot.to_str().expect("UTF-8");
    let kernel = vm.kernel();
    let kernel = kernel.to_str().expect("UTF-8");
    for option in [["--abi", "9"], ["--sysroot", sysroot], ["--netbsd-kernel", kernel]] {
        let words = [&["test", "linux-uml", "linux-7"][..], &option].concat();
        let named = format!("{}: works only for netbsd targets, not linux-uml, linux-7", option[0]);
        unused(&words, &[&named]);
        unused(&[&["exec", "linux-uml"][..], &option, &["--", "a"]].concat(), &[option[0]]);
    }
    unused(
        &["test", "--declare", "vhci"],
        &["--declare: works only for your own kernels", "--kernel"],
    );
    unused(
        &["drift", "linux-uml", "--manual", sysroot],
        &["--manual: works only for netbsd targets"],
    );
    // An unused variable is not an error.
    let mut command = vm.command(&["build", "netbsd"]);
    assert_refused(command.env("KCOV_VM_NETBSD_SYSROOT", sysroot), 69, &["netbsd: not run"]);
}

#[test]
fn drift_needs_what_only_the_user_has() {
    let vm = Vm::new();
    let refuses = |words: &[&str], status, what: &[&str]| {
        assert_refused(&mut vm.command(&[&["drift", "netbsd"], words].concat()), status, what);
    };
    refuses(&[], 69, &["netbsd: not run: needs --manual FILE", "--source DIR"]);
    refuses(&["--manual", "/none"], 2, &["--manual /none: there is no such file"]);
    refuses(&["--source", "/none"], 2, &["--source /none: there is no such directory"]);
}

#[test]
fn a_kernel_of_another_release_is_refused() {
    let vm = Vm::new();
    let (program, kernel, sysroot) = (vm.program(), vm.kernel(), vm.sysroot());
    let given: [(&str, &Path); 3] =
        [("--kernel", &kernel), ("--sysroot", &sysroot), ("--abi", Path::new("9"))];
    vm.refuses(69, &given, &program, &["is NetBSD 10.99.12", "`9.`", "--declare-release"]);
}

#[test]
fn missing_tools_are_named() {
    let vm = Vm::new();
    let (kernel, sysroot) = (vm.kernel(), vm.sysroot());
    let mut command = vm.command(&["exec", "netbsd", "--kernel"]);
    command.arg(kernel).arg("--sysroot").arg(sysroot).arg("--").arg(vm.program());
    assert_refused(command.env("PATH", ""), 69, &["netbsd: image: ", "makefs", "apt-get install"]);
}
