//! The NetBSD lane without NetBSD: refused files and, with the feature
//! `guest-tests`, the handling of a guest's output.

mod common;

use common::{Place, VM, assert_refused};
use std::path::{Path, PathBuf};

/// The link address and the start of the code.
const LOAD: u32 = 0x10_0000;
/// The upper half of the address space belongs to the kernel.
const KERNEL: u64 = 0xffff_ffff_8000_0000;

fn note(owner: &str, kind: u32, content: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in [owner.len() as u32 + 1, 4, kind] {
        bytes.extend_from_slice(&word.to_le_bytes());
    }
    bytes.extend_from_slice(owner.as_bytes());
    bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
    bytes.extend_from_slice(&content.to_le_bytes());
    bytes
}

/// Makes an ELF file that passes for a kernel of NetBSD 10.99.12. It has an entry point for QEMU and
/// two segments: notes and code.
fn elf(entry: u64, code: &[u8]) -> Vec<u8> {
    const HEADERS: usize = 64 + 2 * 56;
    let notes = [note("NetBSD", 1, 1_099_001_200), note("Xen", 18, LOAD)].concat();
    let mut bytes = vec![0; HEADERS];
    let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    put(0, b"\x7fELF\x02\x01\x01");
    put(16, &2_u16.to_le_bytes());
    put(18, &62_u16.to_le_bytes());
    put(20, &1_u32.to_le_bytes());
    put(24, &entry.to_le_bytes());
    put(32, &64_u64.to_le_bytes());
    put(52, &64_u16.to_le_bytes());
    put(54, &56_u16.to_le_bytes());
    put(56, &2_u16.to_le_bytes());
    let segments = [(4_u32, 0, notes.len(), HEADERS), (1, LOAD, code.len(), HEADERS + notes.len())];
    for (index, (kind, address, length, place)) in segments.into_iter().enumerate() {
        let at = 64 + 56 * index;
        put(at, &kind.to_le_bytes());
        put(at + 4, &7_u32.to_le_bytes());
        put(at + 8, &(place as u64).to_le_bytes());
        for field in [16, 24] {
            put(at + field, &u64::from(address).to_le_bytes());
        }
        for field in [32, 40] {
            put(at + field, &(length as u64).to_le_bytes());
        }
        put(at + 48, &4_u64.to_le_bytes());
    }
    [bytes, notes, code.to_vec()].concat()
}

impl Place {
    fn kernel(&self) -> PathBuf {
        self.write("netbsd", elf(KERNEL, &[]))
    }

    /// Makes a program that a NetBSD guest could run.
    fn own_program(&self) -> PathBuf {
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
    let vm = Place::new();
    let (program, kernel, sysroot) = (vm.own_program(), vm.kernel(), vm.sysroot());
    let page = "docs/src/netbsd-lane.md";
    vm.refuses(69, &[], &program, &["netbsd: not run", "--kernel FILE", "--sysroot DIR", page]);
    vm.refuses(69, &[("--kernel", &kernel)], &program, &["--sysroot DIR", page]);
    vm.refuses(69, &[("--sysroot", &sysroot)], &program, &["--kernel FILE", page]);
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page).is_file());
    assert_refused(&mut vm.command(&["build", "netbsd"]), 69, &["netbsd: not run", page]);
}

#[test]
fn a_test_without_a_kernel_is_not_run_and_no_pass() {
    let vm = Place::new();
    let output = vm.command(&["test", "netbsd"]).output().expect("kcov-vm starts");
    let stdout = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(69), "{stdout}");
    assert!(stdout.contains("netbsd: not run: needs --kernel FILE"), "{stdout}");
    assert!(!stdout.contains("passed"), "{stdout}");
}

#[test]
fn the_command_line_is_checked() {
    let vm = Place::new();
    let (program, kernel, sysroot) = (vm.own_program(), vm.kernel(), vm.sysroot());
    let given: [(&str, &Path); 2] = [("--kernel", &kernel), ("--sysroot", &sysroot)];
    let none = Path::new("/none");
    vm.refuses(2, &[("--sysroot", none)], &program, &["--sysroot /none"]);
    let with = |option, value| [&given[..], &[(option, Path::new(value))]].concat();
    vm.refuses(2, &with("--declare", "a b"), &program, &["--declare a b"]);
    // A program for another system. The message says how to build it for this
    // one.
    let own = Path::new(VM);
    let words = ["is not a program for NetBSD", "kcov-vm env netbsd"];
    vm.refuses(2, &given, own, &words);
}

#[test]
fn checks_are_those_of_the_system() {
    let vm = Place::new();
    let (kernel, sysroot) = (vm.kernel(), vm.sysroot());
    let test = |id: &str| {
        let mut command = vm.command(&["test", "netbsd", "--check", id, "--kernel"]);
        command.arg(&kernel).arg("--sysroot").arg(&sysroot);
        command
    };
    // A check for Linux only.
    let words = ["--check enable.mode-beyond-32-bits-is-refused: no such check or topic on NetBSD"];
    assert_refused(&mut test("enable.mode-beyond-32-bits-is-refused"), 2, &words);
    assert_refused(
        &mut test("enable.mode-comes-frst"),
        2,
        &["enable.mode-comes-frst: no such check"],
    );
    // A check for NetBSD only.
    let mut linux = vm.command(&["test", "linux-uml", "--check", "enable.mode-comes-first"]);
    assert_refused(&mut linux, 2, &["enable.mode-comes-first: no such check or topic on Linux"]);
}

#[test]
fn options_that_would_change_nothing_are_refused() {
    let vm = Place::new();
    let sysroot = vm.sysroot();
    let unused = |words: &[&str], what: &[&str]| assert_refused(&mut vm.command(words), 2, what);
    let sysroot = sysroot.to_str().expect("UTF-8");
    let why = "--sysroot: works only for netbsd targets, not linux-uml, linux-7";
    unused(&["test", "linux-uml", "linux-7", "--sysroot", sysroot], &[why]);
    unused(&["exec", "linux-uml", "--sysroot", sysroot, "--", "a"], &["--sysroot"]);
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
    let vm = Place::new();
    let words = ["netbsd: not run: needs --manual FILE", "--source DIR"];
    assert_refused(&mut vm.command(&["drift", "netbsd"]), 69, &words);
}

#[test]
fn files_that_are_no_kernel_of_the_release_are_refused() {
    let vm = Place::new();
    let (program, kernel, sysroot) = (vm.own_program(), vm.kernel(), vm.sysroot());
    let (packed, other) = (vm.write("packed", b"\x1f\x8b\x08"), vm.write("other", ""));
    for (target, file, words) in [
        ("netbsd-9", &kernel, &["is NetBSD 10.99.12", "`9.`", "--declare-release"][..]),
        ("netbsd", &program, &["is a NetBSD program"]),
        ("netbsd", &packed, &["gunzip"]),
        ("netbsd", &other, &["is not a NetBSD/amd64 kernel"]),
    ] {
        let mut command = vm.command(&["exec", target, "--kernel"]);
        command.arg(file).arg("--sysroot").arg(&sysroot).arg("--").arg(&program);
        assert_refused(&mut command, 69, words);
    }
}

#[test]
fn missing_tools_are_named() {
    let vm = Place::new();
    let (kernel, sysroot) = (vm.kernel(), vm.sysroot());
    let mut command = vm.command(&["exec", "netbsd", "--kernel"]);
    command.arg(kernel).arg("--sysroot").arg(sysroot).arg("--").arg(vm.own_program());
    assert_refused(command.env("PATH", ""), 69, &["netbsd: image: ", "makefs", "apt-get install"]);
}

/// A small program in place of a kernel writes given texts to both serial lines.
#[cfg(feature = "guest-tests")]
mod guest {
    use super::common::Place;
    use super::{KERNEL, LOAD, elf};
    use kcov_vm::carry::Carried;
    use kcov_vm::guest::{Expect, Limits, Listener, Machine, Stream, boot};
    use kcov_vm::host::{Need, require};
    use kcov_vm::image::Image;
    use kcov_vm::system::System;
    use kcov_vm::target::{Accel, Targets};
    use kcov_vm_guest::job::Job;
    use kcov_vm_guest::protocol::{Exit, Frame};
    use std::path::Path;
    use std::time::Duration;

    const CONSOLE: u16 = 0x3f8;
    const CHANNEL: u16 = 0x2f8;

    /// Code that writes texts to ports, one after the other, and then halts.
    fn writer(texts: &[(u16, &str)]) -> Vec<u8> {
        // mov esi, text; mov edx, port; next: lodsb; test al, al; jz done;
        // out dx, al; jmp next; done:
        const BLOCK: usize = 18;
        let mut text = LOAD + (BLOCK * texts.len() + 3) as u32;
        let mut code = Vec::new();
        for (port, content) in texts {
            code.push(0xbe);
            code.extend_from_slice(&text.to_le_bytes());
            code.push(0xba);
            code.extend_from_slice(&u32::from(*port).to_le_bytes());
            code.extend_from_slice(&[0xac, 0x84, 0xc0, 0x74, 0x03, 0xee, 0xeb, 0xf8]);
            text += content.len() as u32 + 1;
        }
        // halt: hlt; jmp halt
        code.extend_from_slice(&[0xf4, 0xeb, 0xfd]);
        code.extend(texts.iter().flat_map(|(_, content)| [content.as_bytes(), &[0]].concat()));
        code
    }

    #[derive(Default)]
    struct Ear(Vec<u8>);

    impl Listener for Ear {
        fn output(&mut self, _: Stream, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }

    #[test]
    fn a_whole_run_ends_with_its_last_frame() {
        require(Need::Netbsd).expect("the tools of NetBSD guests");
        let frames = [
            Frame::Boot { release: "10.99.12".into(), machine: "amd64".into() },
            Frame::Start,
            Frame::Out(b"hello".to_vec()),
            Frame::Exit(Exit::Status(3)),
            Frame::End,
        ];
        let frames = frames.iter().map(|frame| frame.encode("n")).collect::<String>();
        let console = "NetBSD 10.99.12\r\nWARNING: no TOD clock present\r\n";
        let place = Place::new();
        let code = writer(&[(CONSOLE, console), (CHANNEL, &frames)]);
        let kernel = place.write("netbsd", elf(KERNEL, &code));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/data/targets.toml");
        let targets = Targets::load(&file).expect("valid");
        let machine = Machine {
            target: targets.named("netbsd").expect("there is one"),
            kernel,
            disc: None,
            accel: Accel::Tcg,
            memory: None,
            ptrace: false,
            more_memory: 0,
            input: false,
            words: "",
        };
        let job = Job { nonce: "n".into(), ..Job::default() };
        // The kernel ends by itself, with room for a busy host.
        let late = Duration::from_secs(120);
        let limits = Limits { boot: late, program: late, ..Limits::default() };
        let (system, release, machine_name) = (System::NetBsd, "10.".into(), "amd64".into());
        let expect = Expect { system, release, machine: machine_name, build: None };
        let image = Image { init: b"init", job: &job, carried: &Carried::default() };
        let mut ear = Ear::default();
        let finished = boot(&machine, &image, limits, &expect, place.path(), &mut ear);
        let finished = finished.expect("whole");
        assert_eq!((finished.exit, finished.release.as_str()), (Some(Exit::Status(3)), "10.99.12"));
        assert_eq!(ear.0, b"hello");
    }
}
