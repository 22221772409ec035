//! The NetBSD lane as far as it goes without NetBSD: what is refused, and,
//! with the feature `guest-tests`, a small program in the kernel's place that
//! says what it is told to on both serial lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Where the fake kernel is linked, and its code begins.
const LOAD: u32 = 0x10_0000;
/// Half of the address space is a kernel's.
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

/// An ELF file of NetBSD 10.99.12 with an entry for QEMU, in two segments:
/// its notes, and code.
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

struct Vm(tempfile::TempDir);

impl Vm {
    fn new() -> Self {
        Self(tempfile::tempdir().expect("a directory"))
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        let path = self.0.path().join(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        path
    }

    fn kernel(&self) -> PathBuf {
        self.write("netbsd", &elf(KERNEL, &[]))
    }

    /// A program that a NetBSD guest could run.
    fn program(&self) -> PathBuf {
        self.write("program", &elf(0x40_0000, &[]))
    }

    fn sysroot(&self, without: &str) -> PathBuf {
        for name in
            ["crt0.o", "crti.o", "crtn.o", "libc.a", "libm.a", "libpthread.a", "libgcc_eh.a"]
        {
            if name != without {
                self.write(&format!("sysroot/usr/lib/{name}"), b"");
            }
        }
        self.0.path().join("sysroot")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-vm"));
        command.env("KCOV_VM_CACHE", self.0.path().join("cache")).args(words);
        for name in ["KCOV_VM_NETBSD_KERNEL", "KCOV_VM_NETBSD_SYSROOT"] {
            command.env_remove(name);
        }
        command
    }

    /// Executes a program in a guest, which must not come to that.
    #[track_caller]
    fn refuses(&self, status: i32, options: &[(&str, &Path)], program: &Path, words: &[&str]) {
        let mut command = self.command(&["exec", "netbsd"]);
        for (option, value) in options {
            command.arg(option).arg(value);
        }
        refuses(command.arg("--").arg(program), status, words);
    }
}

/// One line says why.
#[track_caller]
fn refuses(command: &mut Command, status: i32, words: &[&str]) {
    let output = command.output().expect("kcov-vm starts");
    let stderr = String::from_utf8(output.stderr).expect("UTF-8");
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    for word in words {
        assert!(stderr.contains(word), "`{word}` is not in: {stderr}");
    }
}

#[test]
fn what_only_the_user_has_is_asked_for() {
    let vm = Vm::new();
    let (program, kernel, sysroot) = (vm.program(), vm.kernel(), vm.sysroot(""));
    let page = "docs/netbsd-lane.md";
    vm.refuses(69, &[], &program, &["netbsd: not run", "--kernel FILE", "--sysroot DIR", page]);
    vm.refuses(69, &[("--kernel", &kernel)], &program, &["--sysroot DIR", page]);
    vm.refuses(69, &[("--sysroot", &sysroot)], &program, &["--kernel FILE", page]);
    assert!(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(page).is_file());
    refuses(&mut vm.command(&["build", "netbsd"]), 69, &["netbsd: not run", page]);
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
    let (program, kernel, sysroot) = (vm.program(), vm.kernel(), vm.sysroot(""));
    let given: [(&str, &Path); 2] = [("--kernel", &kernel), ("--sysroot", &sysroot)];
    let none = Path::new("/none");
    vm.refuses(2, &[("--sysroot", none)], &program, &["--sysroot /none"]);
    vm.refuses(2, &[("--netbsd-kernel", none)], &program, &["--kernel /none"]);
    let with = |option, value| [&given[..], &[(option, Path::new(value))]].concat();
    vm.refuses(2, &with("--abi", "8"), &program, &["--abi 8: netbsd has 10, 9"]);
    vm.refuses(2, &with("--declare", "a b"), &program, &["--declare a b"]);
    // A program for another system, and how to build it for this one.
    let own = Path::new(env!("CARGO_BIN_EXE_kcov-vm"));
    let words = ["is not a program for NetBSD", "netbsd-ld", "--target x86_64-unknown-netbsd"];
    vm.refuses(2, &given, own, &words);
}

#[test]
fn other_files_than_kernels_are_refused() {
    let vm = Vm::new();
    let (program, kernel, sysroot) = (vm.program(), vm.kernel(), vm.sysroot(""));
    let refuses = |kernel: &Path, words: &[&str]| {
        let given: [(&str, &Path); 2] = [("--kernel", kernel), ("--sysroot", &sysroot)];
        vm.refuses(69, &given, &program, words);
    };
    let own = Path::new(env!("CARGO_BIN_EXE_kcov-vm"));
    refuses(own, &["netbsd: kernel: ", "is not a NetBSD/amd64 kernel"]);
    refuses(&program, &["netbsd: kernel: ", "is a NetBSD program"]);
    let given: [(&str, &Path); 3] =
        [("--kernel", &kernel), ("--sysroot", &sysroot), ("--abi", Path::new("9"))];
    vm.refuses(69, &given, &program, &["is of NetBSD 10.99.12", "`9.`", "--declare-release"]);
}

#[test]
fn an_incomplete_sysroot_is_refused() {
    let vm = Vm::new();
    let (program, kernel) = (vm.program(), vm.kernel());
    let sysroot = vm.sysroot("libc.a");
    let given: [(&str, &Path); 2] = [("--kernel", &kernel), ("--sysroot", &sysroot)];
    vm.refuses(69, &given, &program, &["netbsd: image: --sysroot", "lacks libc.a;", "comp.tar.xz"]);
}

#[test]
fn missing_tools_are_named() {
    let vm = Vm::new();
    let (kernel, sysroot) = (vm.kernel(), vm.sysroot(""));
    let mut command = vm.command(&["exec", "netbsd", "--kernel"]);
    command.arg(kernel).arg("--sysroot").arg(sysroot).arg("--").arg(vm.program());
    refuses(command.env("PATH", ""), 69, &["netbsd: image: ", "makefs", "apt-get install"]);
}

#[cfg(feature = "guest-tests")]
mod guest {
    use super::*;
    use kcov_vm::error::{Error, Unavailable};
    use kcov_vm::guest::{Accel, Expect, Finished, Limits, Listener, Machine, Stream, boot};
    use kcov_vm::image::Image;
    use kcov_vm::system::System;
    use kcov_vm::target::Targets;
    use kcov_vm_guest::job::Job;
    use kcov_vm_guest::protocol::{Exit, Frame};
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
        for (_, content) in texts {
            code.extend_from_slice(content.as_bytes());
            code.push(0);
        }
        code
    }

    #[derive(Default)]
    struct Ear(Vec<u8>);

    impl Listener for Ear {
        fn output(&mut self, _: Stream, bytes: &[u8]) {
            self.0.extend_from_slice(bytes);
        }
    }

    /// Boots a kernel that says this, with a file system that it does not read.
    fn run(texts: &[(u16, &str)]) -> (Result<Finished, Unavailable>, String) {
        let vm = Vm::new();
        let kernel = vm.write("netbsd", &elf(KERNEL, &writer(texts)));
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("targets.toml");
        let targets = Targets::load(&file).expect("valid");
        let target = targets.select(&["netbsd".into()]).expect("there is one")[0];
        let machine = Machine { target, kernel, disc: None, accel: Accel::Tcg };
        let job = Job { nonce: "n".into(), ..Job::default() };
        let limit = Duration::from_secs(5);
        let limits = Limits { boot: limit, program: limit };
        let expect = Expect {
            system: System::NetBsd,
            release: "10.".into(),
            machine: "amd64".into(),
            build: None,
        };
        let image = Image { init: b"init", job: &job, files: &[] };
        let mut ear = Ear::default();
        let result = boot(&machine, &image, limits, &expect, vm.0.path(), &mut ear);
        let result = result.map_err(|error| match error {
            Error::Unavailable(failure) => failure,
            other => panic!("{other}"),
        });
        (result, String::from_utf8(ear.0).expect("UTF-8"))
    }

    #[track_caller]
    fn fails(texts: &[(u16, &str)], words: &str) {
        let why = run(texts).0.expect_err("no verdict").to_string();
        assert!(why.contains(words), "{why}");
    }

    fn frames(frames: &[Frame]) -> String {
        frames.iter().map(|frame| frame.encode("n")).collect()
    }

    fn begin() -> Vec<Frame> {
        let boot = Frame::Boot { release: "10.99.12".into(), machine: "amd64".into() };
        vec![boot, Frame::Start, Frame::Out(b"hello".to_vec())]
    }

    #[test]
    fn a_whole_run_ends_with_its_last_frame() {
        let rest = [Frame::Exit(Exit::Status(3)), Frame::End];
        let texts = [
            (CONSOLE, "NetBSD 10.99.12\r\nWARNING: no TOD clock present\r\n".to_string()),
            (CHANNEL, frames(&begin()) + &frames(&rest)),
        ];
        let texts: Vec<_> = texts.iter().map(|(port, text)| (*port, text.as_str())).collect();
        let (result, output) = run(&texts);
        let finished = result.expect("whole");
        assert_eq!((finished.exit, finished.release.as_str()), (Some(Exit::Status(3)), "10.99.12"));
        assert_eq!(output, "hello");
    }

    #[test]
    fn bad_news_on_the_console() {
        let (before, after) = ("NetBSD 10.99.12\r\n", "\r\nrebooting...\r\n");
        let says = |line: &str| [before, line, after].concat();
        for (line, words) in [
            ("panic: trap", "boot: the kernel panicked: `panic: trap`"),
            ("cannot mount root, error = 79", "boot: the kernel found no root file system"),
            ("panic: no init", "boot: the kernel could not start init"),
            ("db{0}> ", "boot: the kernel stopped in its debugger"),
        ] {
            fails(&[(CONSOLE, &says(line))], words);
        }
        let texts = [(CHANNEL, &*frames(&begin())), (CONSOLE, "uvm_fault(0xff, 0x0, 1) -> e\n")];
        // In which phase depends on which of the two lines is read first.
        fails(&texts, "the kernel faulted: `uvm_fault");
    }

    #[test]
    fn a_kernel_that_does_not_boot() {
        let words = "boot: the image did not boot within 5 s; last on its console: `NetBSD`";
        fails(&[(CONSOLE, "NetBSD\r\n")], words);
    }
}
