//! Boots a small program in place of a kernel. It writes given texts to both
//! serial lines.

use super::common::ended::assert_ends_with_its_runner;
use super::common::vm::Vm;
use super::elf::{KERNEL, LOAD, elf};
use kcov_vm::carry::Carried;
use kcov_vm::error::Result;
use kcov_vm::guest::{Expect, Finished, Limits, Listener, Machine, Stream, boot};
use kcov_vm::host::{Need, require};
use kcov_vm::image::Image;
use kcov_vm::system::System;
use kcov_vm::target::{Accel, Targets};
use kcov_vm_guest::job::Job;
use kcov_vm_guest::protocol::{Exit, Frame};
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;
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

/// Installs the tools once, because only one process at a time can install
/// packages.
static TOOLS: LazyLock<()> =
    LazyLock::new(|| require(Need::Netbsd).expect("the tools of NetBSD guests"));

/// The time limit for a kernel that ends by itself, with room for a busy host.
const LATE: Duration = Duration::from_secs(120);

/// Boots this machine code as a NetBSD kernel. It gets a root file system, but does not read it.
fn boot_code(code: &[u8]) -> (Result<Finished>, String) {
    LazyLock::force(&TOOLS);
    let vm = Vm::new();
    let kernel = vm.write("netbsd", elf(KERNEL, code));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("vm/data/targets.toml");
    let targets = Targets::load(&file).expect("valid");
    let target = targets.select(&["netbsd".into()]).expect("there is one")[0];
    let machine = Machine {
        target,
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
    let limits = Limits { boot: LATE, program: LATE, ..Limits::default() };
    let expect = Expect {
        system: System::NetBsd,
        release: "10.".into(),
        machine: "amd64".into(),
        build: None,
    };
    let image = Image { init: b"init", job: &job, carried: &Carried::default() };
    let mut ear = Ear::default();
    let result = boot(&machine, &image, limits, &expect, vm.path(), &mut ear);
    (result, String::from_utf8(ear.0).expect("UTF-8"))
}

#[test]
fn a_whole_run_ends_with_its_last_frame() {
    let frames = [
        Frame::Boot { release: "10.99.12".into(), machine: "amd64".into() },
        Frame::Start,
        Frame::Out(b"hello".to_vec()),
        Frame::Exit(Exit::Status(3)),
        Frame::End,
    ];
    let frames = frames.iter().map(|frame| frame.encode("n")).collect::<String>();
    let console = "NetBSD 10.99.12\r\nWARNING: no TOD clock present\r\n";
    // The kernel writes one text after the other.
    let (result, output) = boot_code(&writer(&[(CONSOLE, console), (CHANNEL, &frames)]));
    let finished = result.expect("whole");
    assert_eq!((finished.exit, finished.release.as_str()), (Some(Exit::Status(3)), "10.99.12"));
    assert_eq!(output, "hello");
}

#[test]
fn a_kernel_that_crashes_at_once() {
    // An invalid instruction without a handler.
    let (result, _) = boot_code(&[0x0f, 0x0b]);
    let why = result.expect_err("no verdict").to_string();
    assert!(why.starts_with("boot: "), "{why}");
    assert!(why.lines().last().is_some_and(|last| last.contains("netbsd-lane.md")), "{why}");
}

/// QEMU boots the same kernel for Linux and NetBSD.
#[test]
fn a_guest_ends_with_its_runner() {
    LazyLock::force(&TOOLS);
    let vm = Vm::new();
    let kernel = vm.write("netbsd", elf(KERNEL, &writer(&[])));
    // In the user's cache, which has init.
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-ci"));
    command.args(["exec", "linux-7", "--accel", "tcg", "--kernel"]).arg(kernel);
    command.args(["--", "/bin/true"]);
    assert_ends_with_its_runner(&mut command, |_| ());
}
