//! Boots a small program in place of a kernel. It writes given texts to both
//! serial lines.

use super::common::ended::assert_ends_with_its_runner;
use super::common::vm::Vm;
use super::elf::{KERNEL, LOAD, elf};
use kcov_vm::carry::Carried;
use kcov_vm::error::{Error, Unavailable};
use kcov_vm::guest::{Expect, Finished, Limits, Listener, Machine, Stream, boot};
use kcov_vm::host::{Need, require};
use kcov_vm::image::Image;
use kcov_vm::system::System;
use kcov_vm::target::{Accel, Targets};
use kcov_vm::verdict::Reader;
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

/// Boots a kernel that prints these texts, with a file system that it does not
/// read.
fn run(texts: &[(u16, &str)]) -> (Result<Finished, Unavailable>, String) {
    boot_code(&writer(texts), LATE)
}

/// Installs the tools once, because only one process at a time can install
/// packages.
static TOOLS: LazyLock<()> =
    LazyLock::new(|| require(Need::Netbsd).expect("the tools of NetBSD guests"));

/// The time limit for a kernel that ends by itself, with room for a busy host.
const LATE: Duration = Duration::from_secs(120);

fn boot_code(code: &[u8], limit: Duration) -> (Result<Finished, Unavailable>, String) {
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
    let limits = Limits { boot: limit, program: limit, ..Limits::default() };
    let expect = Expect {
        system: System::NetBsd,
        release: "10.".into(),
        machine: "amd64".into(),
        build: None,
    };
    let image = Image { init: b"init", job: &job, carried: &Carried::default() };
    let mut ear = Ear::default();
    let result = boot(&machine, &image, limits, &expect, vm.path(), &mut ear);
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
    // The phase depends on which line is read first.
    fails(&texts, "the kernel faulted: `uvm_fault");
}

#[test]
fn a_kernel_without_the_device_is_no_verdict() {
    // The suite's message for a declared feature that is missing.
    let why = "the kernel is not what the target declares: kcov declared but absent";
    let said = Frame::Out(format!("KTAP version 1\n1..264\nBail out! {why}\n").into_bytes());
    let boot = begin().remove(0);
    let all = [boot, Frame::Start, said, Frame::Exit(Exit::Status(69)), Frame::End];
    let (result, output) = run(&[(CHANNEL, &frames(&all))]);
    let exit = result.expect("whole").exit.expect("it ended");
    let mut reader = Reader::default();
    reader.feed(output.as_bytes());
    assert!(reader.finish(exit).expect_err("no verdict").ends_with(why));
}

#[test]
fn a_kernel_that_crashes_at_once() {
    // An invalid instruction without a handler.
    let (result, _) = boot_code(&[0x0f, 0x0b], LATE);
    let why = result.expect_err("no verdict").to_string();
    assert!(why.starts_with("boot: "), "{why}");
    assert!(why.lines().last().is_some_and(|last| last.contains("netbsd-lane.md")), "{why}");
}

#[test]
fn a_kernel_that_does_not_boot() {
    let (result, _) = boot_code(&writer(&[(CONSOLE, "NetBSD\r\n")]), Duration::from_secs(20));
    let why = result.expect_err("no verdict").to_string();
    let words = "boot: the guest did not boot within 20 s; last on its console: `NetBSD`";
    assert!(why.contains(words), "{why}");
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
