//! The C header `kcov/capi/kcov.h`: every compiler accepts it for every architecture, its programs
//! do in a guest what they say, and it agrees with the model of the driver.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs; the compilers clang and tcc; and zig, as
//! `KCOV_ZIG`. Step `c` of ci/check has all of them. The feature `variant-tests` adds other kernels.

mod common;

use common::{Outcome, outcome, vm};
use kcov_conformance::lockstep::Generator;
use kcov_model::linux::{BUS, Kernel, Linux};
use kcov_model::{
    Access, Geometry, Handle, Memory, Mode, Operation, Outcome as Expected, Protection, Request,
    World,
};
use kcov_sys::{errno, linux};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const WARNINGS: &[&str] = &["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// zig's names of the architectures with kcov, as far as it has their libc; the 32-bit and the
/// 64-bit variant, and both byte orders.
const ZIG_TARGETS: &[&str] = &[
    "x86_64-linux-musl",
    "x86_64-linux-gnu",
    "x86-linux-musl",
    "aarch64-linux-musl",
    "arm-linux-musleabihf",
    "riscv64-linux-musl",
    "loongarch64-linux-musl",
    "s390x-linux-musl",
    "powerpc64le-linux-musl",
    "powerpc64-linux-musl",
    "powerpc-linux-musleabi",
    "mips-linux-musleabi",
    "mips64-linux-muslabi64",
    "x86_64-netbsd",
];

/// Programs in C99, also valid in C++11.
const PROGRAMS: &[&str] = &[
    "examples/forkserver.c",
    "examples/kcovtrace.c",
    "examples/showmap.c",
    "tests/hostile.c",
    "tests/life.c",
];

fn source(name: &str) -> String {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kcov/capi").join(name);
    file.canonicalize().expect("a source").to_str().expect("UTF-8").to_owned()
}

/// A file for a program. Its name has the name of the test, because tests run at once.
fn program(name: &str) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join("capi");
    fs::create_dir_all(&directory).expect("a directory");
    directory.join(name)
}

fn zig(tool: &str, target: &str) -> Command {
    let zig = std::env::var("KCOV_ZIG").expect("KCOV_ZIG, which ./ci/check c sets");
    let mut words = zig.split(' ');
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).args([tool, "-target", target]);
    command
}

#[track_caller]
fn succeeds(command: &mut Command) -> String {
    let Outcome { status, stdout, stderr } = outcome(command);
    assert_eq!(status, Some(0), "{command:?}\n{stdout}{stderr}");
    stdout
}

/// Links a program of `kcov/capi` for a guest, with gcc or for another architecture.
#[track_caller]
fn built_for(target: Option<&str>, name: &str, source_file: &str) -> String {
    let file = program(name);
    let mut command = target.map_or_else(|| Command::new("gcc"), |target| zig("cc", target));
    let standard = if PROGRAMS.contains(&source_file) { "-std=c99" } else { "-std=gnu99" };
    command.args([standard, "-O2", "-static", "-pthread", "-Wall", "-Wextra", "-Werror", "-o"]);
    succeeds(command.arg(&file).arg(source(source_file)));
    file.to_str().expect("UTF-8").to_owned()
}

#[track_caller]
fn built(name: &str, source_file: &str) -> String {
    built_for(None, name, source_file)
}

/// Carries a command that ends with any status.
const SH: &[&str] = &["--carry", "/bin/sh"];

/// Runs a program in a guest.
#[track_caller]
fn exec(options: &[&str], words: &[&str]) -> Outcome {
    outcome(vm(&["exec"]).args(options).args(["linux-uml", "--"]).args(words))
}

#[test]
fn every_compiler_accepts_the_header() {
    let object = program("accepted.o");
    let object = object.to_str().expect("UTF-8");
    let all = PROGRAMS.iter().map(|name| (*name, "-DUNUSED"));
    for (name, before) in all.chain([("tests/life.c", "-DFIRST"), ("tests/life.c", "-DLAST")]) {
        let rest = ["-O2", "-c", &source(name), "-o", object, before];
        for cc in ["gcc", "clang"] {
            succeeds(Command::new(cc).arg("-std=c99").args(WARNINGS).args(rest));
            let c_plus_plus = ["-x", "c++", "-std=c++11"];
            succeeds(Command::new(cc).args(c_plus_plus).args(WARNINGS).args(rest));
        }
        succeeds(Command::new("tcc").args(["-Wall", "-Werror", "-std=c99"]).args(rest));
    }
}

#[test]
fn zig_accepts_the_header_for_each_architecture() {
    let object = program("zig.o");
    let object = object.to_str().expect("UTF-8");
    for target in ZIG_TARGETS {
        // zig warns of its own flag there.
        let pic = if target.starts_with("mips64") { "-fPIC" } else { "-O2" };
        for options in ["cc -std=c99", "cc -std=c99 -DFIRST", "c++ -x c++ -std=c++11 -DLAST"] {
            let mut options = options.split(' ');
            let mut command = zig(options.next().expect("a tool"), target);
            let rest = [pic, "-c", &source("tests/life.c"), "-o", object];
            succeeds(command.args(options).args(WARNINGS).args(rest));
        }
    }
    for name in PROGRAMS {
        let mut command = zig("cc", "x86_64-netbsd");
        succeeds(command.args(WARNINGS).args([&source(name), "-o", object]));
    }
}

/// A number that two encodings do not share is noticed.
#[test]
fn a_wrong_number_is_noticed() {
    let command = &mut Command::new("gcc");
    command.args(["-std=c99", "-DFIRST", "-fsyntax-only", "-x", "c", "-D__powerpc64__"]);
    let include = format!("-I/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    let Outcome { status, stderr, .. } = outcome(command.args([include, source("tests/life.c")]));
    assert_eq!(status, Some(1), "{stderr}");
    assert!(stderr.contains("check_enable"), "{stderr}");
}

#[test]
fn hostile_buffers_on_the_host() {
    let file = program("sanitized");
    let sanitizers =
        ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-g", "-std=c99"];
    succeeds(
        Command::new("gcc").args(sanitizers).arg(source("tests/hostile.c")).arg("-o").arg(&file),
    );
    let said = succeeds(&mut Command::new(file));
    assert!(said.starts_with("KTAP version 1\n1..4\n") && !said.contains("not ok"), "{said}");
}

/// Words of 4 bytes, which only 32-bit programs meet.
#[cfg(target_arch = "x86_64")]
#[test]
fn hostile_buffers_of_narrow_words() {
    let file = built_for(Some("x86-linux-musl"), "narrow", "tests/hostile.c");
    let said = succeeds(&mut Command::new(file));
    assert!(said.contains("\nok 5 narrow-pcs-of-any-count\n"), "{said}");
}

/// Runs the KTAP programs in a guest.
#[track_caller]
fn ktap_programs_pass(guest: &str, target: Option<&str>, narrow: bool) {
    for (name, tests) in [("life", 10), ("hostile", if narrow { 5 } else { 4 })] {
        let file = built_for(target, &format!("{name}-{guest}"), &format!("tests/{name}.c"));
        let said = succeeds(&mut vm(&["test", guest, "--program", &file]));
        assert!(said.contains(&format!(": {tests} passed, 0 failed, 0 skipped")), "{said}");
    }
}

#[test]
fn the_ktap_programs_pass() {
    ktap_programs_pass("linux-uml", None, false);
}

/// 32-bit programs and words, and the other byte order with the other encoding of requests.
#[cfg(feature = "variant-tests")]
#[test]
fn the_ktap_programs_pass_on_other_architectures() {
    ktap_programs_pass("linux-7", None, false);
    ktap_programs_pass("linux-7-i386", Some("x86-linux-musl"), true);
    ktap_programs_pass("linux-uml-i386", Some("x86-linux-musl"), true);
    ktap_programs_pass("linux-7-ppc64", Some("powerpc64-linux-musl"), false);
}

#[cfg(feature = "variant-tests")]
#[test]
fn a_kernel_without_comparisons_is_told() {
    let file = built("life-nocmp", "tests/life.c");
    let said = succeeds(&mut vm(&["exec", "linux-uml-nocmp", "--", &file]));
    assert!(said.contains("# without comparisons\nok 8 comparisons\n"), "{said}");
}

#[test]
fn kcovtrace_prints_program_counters() {
    let file = built("kcovtrace", "examples/kcovtrace.c");
    let Outcome { status, stdout, stderr } = exec(SH, &[&file, "/bin/sh", "-c", "exit 7"]);
    assert_eq!((status, stderr.as_str()), (Some(7), ""));
    let addresses: Vec<_> =
        stdout.lines().map(|line| line.strip_prefix("0x").expect(line)).collect();
    // The child has unmapped the buffer: execve(2) would record about 50 for each of its 8192 pages.
    assert!((301..300_000).contains(&addresses.len()), "{}", addresses.len());
    assert!(addresses.iter().all(|it| u64::from_str_radix(it, 16).is_ok_and(|pc| pc > 0xffff)));
    let missing = exec(&[], &[&file, "/none"]);
    assert_eq!((missing.status, missing.stderr.contains("/none: ")), (Some(125), true));
}

/// The program of the book's page.
#[test]
fn the_page_has_a_program() {
    let page = include_str!("../../docs/src/from-c.md");
    let text = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let (source, file) = (program("page.c"), program("page"));
    fs::write(&source, text.expect("a program")).expect("a file");
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../kcov/capi");
    let command = &mut Command::new("gcc");
    succeeds(command.args(WARNINGS).arg("-I").arg(include).arg(source).arg("-o").arg(&file));
    let said = succeeds(&mut vm(&["exec", "linux-uml", "--", file.to_str().expect("UTF-8")]));
    assert!(said.lines().count() > 2 && said.lines().all(|line| line.starts_with("0x")), "{said}");
}

/// The records and the new program counters of a line, and the rest.
fn answer(line: &str) -> (u64, u64, &str) {
    let (records, rest) = line.split_once(" records, ").expect("records");
    let (new, rest) = rest.split_once(" new, ").expect("new ones");
    (records.parse().expect("a number"), new.parse().expect("a number"), rest)
}

#[test]
fn the_fork_server_survives_its_children() {
    let (file, cases) = (built("forkserver", "examples/forkserver.c"), program("cases"));
    fs::write(&cases, "AA\nAA\nAA\nCC\n\nBCBC\n").expect("a file");
    let mut command = vm(&["exec", "--stdin", "linux-uml", "--", &file]);
    let cases = fs::File::open(cases).expect("the cases");
    let Outcome { status, stdout, stderr } = outcome(command.stdin(cases));
    assert_eq!((status, stderr.as_str()), (Some(0), ""));
    let answers: Vec<_> = stdout.lines().map(answer).collect();
    let [first, _, again, died, nothing, last] = answers[..] else { panic!("{stdout}") };
    assert!(first.0 > 20 && first.1 > 10 && first.2 == "status 0", "{stdout}");
    assert!(again.0 > 20 && again.1 < first.1 / 2 && again.2 == "status 0", "{stdout}");
    assert!(died.0 > 20 && died.2 == "signal 6", "{stdout}");
    assert!(nothing.0 < first.0 && nothing.2 == "status 0", "{stdout}");
    assert!(last.0 > first.0 && last.1 > 10 && last.2 == "status 0", "{stdout}");
}

#[test]
fn showmap_fills_the_map_of_afl() {
    let (file, afl) = (built("showmap", "examples/showmap.c"), built("afl", "tests/afl.c"));
    let own = exec(SH, &[&file, "/bin/sh", "-c", ""]);
    assert_eq!((own.status, own.stderr.as_str()), (Some(0), ""));
    assert!(own.stdout.lines().count() > 100, "{}", own.stdout);
    // As AFL++ starts it: the status of the command and the number of edges, with two sizes.
    let carried = [SH, &["--carry", &file]].concat();
    let words: &[&str] = &[&afl, "6", &file, "/bin/sh", "-c", "exit 6"];
    let Outcome { status, stdout, stderr } = exec(&carried, words);
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let edges: Vec<u64> = stdout.lines().map(|line| line.parse().expect(line)).collect();
    assert!(edges.len() == 2 && edges[0] > 100 && edges[1] > 100, "{stdout}");
}

/// The slot of the process that is never traced, beyond all names of a run.
const ROOT: usize = 1024;

/// A handle of the model as a number for this machine. No bus has this number.
fn handle(handle: Handle) -> u64 {
    match handle {
        Handle(0 | linux::KCOV_SUBSYSTEM_USB) => handle.0,
        BUS => linux::KCOV_SUBSYSTEM_USB | 0x5000_0000,
        Handle(number) => number | 0x4000_0000,
    }
}

/// An ioctl: its word, and its arguments after descriptor and errno.
fn ask(request: &Request) -> Option<(&'static str, String)> {
    let other = |number, argument| ("request", format!(" {number} {argument}"));
    Some(match request {
        Request::Size(words) => ("size", format!(" {words}")),
        Request::Enable(mode @ ..0x1_0000) => ("enable", format!(" {mode}")),
        Request::Enable(mode) => other(linux::KCOV_ENABLE, *mode),
        Request::Disable(0) => ("disable", String::new()),
        Request::Disable(argument) => other(linux::KCOV_DISABLE, *argument),
        Request::SizeOfOtherWidth => other(linux::KCOV_INIT_TRACE32, 512),
        Request::Unknown => other(0x63ff, 512),
        Request::RemoteEnable(remote) if remote.memory == Memory::Whole => {
            let handles: String = remote.array().map(|it| format!(" {}", handle(it))).collect();
            let (mode, area, common) = (remote.mode, remote.area, handle(remote.common));
            ("remote", format!(" {mode} {area} {common} {}{handles}", remote.array().len()))
        }
        // The header passes a whole structure.
        _ => return None,
    })
}

/// The lines of an operation for the program. None if the header has nothing to do with it.
fn lines(
    number: &mut impl FnMut(u32) -> usize,
    world: &World<Linux>,
    operation: &Operation,
    expected: &Expected,
) -> Option<String> {
    let slot = number(operation.thread().0);
    let process = number(world.process_of(operation.thread()).expect("a process").0);
    let errno = match expected {
        Expected::Refused(errno) => errno.number(errno::linux::ALL),
        _ => 0,
    };
    Some(match *operation {
        Operation::Open { descriptor, access, .. } => {
            let flags = match access {
                Access::ReadOnly => 0,
                Access::WriteOnly => 1,
                Access::ReadWrite => 2,
            };
            format!("{slot} open {} {flags}\n", number(descriptor.0))
        }
        Operation::Duplicate { descriptor, new, .. } => {
            format!("{slot} dup {} {}\n", number(descriptor.0), number(new.0))
        }
        Operation::Pass { descriptor, to, new, .. } => {
            let (old, to, new) = (number(descriptor.0), number(to.0), number(new.0));
            format!("{slot} pass {old}\n{to} take {new}\n")
        }
        Operation::Close { descriptor, .. } => format!("{slot} close {}\n", number(descriptor.0)),
        Operation::Ask { descriptor, ref request, .. } => {
            let (word, arguments) = ask(request)?;
            format!("{slot} {word} {} {errno}{arguments}\n", number(descriptor.0))
        }
        Operation::Map { descriptor, map, geometry, .. } => {
            let Geometry { bytes, offset, writable, private, .. } = geometry;
            let (map, fd) = (number(map.0), number(descriptor.0));
            let (writable, private) = (u8::from(writable), u8::from(private));
            format!("{slot} map {map} {fd} {bytes} {offset} {writable} {private} {errno}\n")
        }
        Operation::Unmap { map, .. } => format!("{slot} unmap {}\n", number(map.0)),
        Operation::Protect { map, protection, .. } => {
            let prot = match protection {
                Protection::None => 0,
                Protection::Read => 1,
                Protection::ReadWrite => 3,
            };
            format!("{slot} protect {} {prot} {errno}\n", number(map.0))
        }
        Operation::Trace { thread, map, count } => {
            let recording = world.recording(thread, map);
            let mode = u8::from(recording.is_some_and(|it| it.mode == Mode::Cmp));
            let most = match expected {
                Expected::Unchanged => 0,
                Expected::Grown(most) => *most,
                _ => u64::MAX,
            };
            format!("{slot} trace {} {count} {most} {mode}\n", number(map.0))
        }
        Operation::Store { map, word, .. } => format!("{slot} store {} {word}\n", number(map.0)),
        Operation::Load { map, .. } => {
            let word = if let Expected::Word(word) = expected { *word } else { u64::MAX };
            format!("{slot} load {} {word}\n", number(map.0))
        }
        Operation::StartThread { new, .. } => format!("{slot} thread {}\n", number(new.0)),
        Operation::EndThread { .. } => format!("{slot} end\n{process} join {slot}\n"),
        Operation::Fork { new, .. } => format!("{slot} fork {}\n", number(new.0)),
        Operation::Exit { .. } => format!("{slot} exit\n{ROOT} wait {process}\n"),
        Operation::Kill { .. } => format!("{ROOT} kill {process}\n"),
        // No function of the header is in these, and they leave no state but those of exec.
        Operation::Misuse { .. }
        | Operation::Remap { .. }
        | Operation::Background { .. }
        | Operation::Execute { .. } => return None,
    })
}

/// Operations of lockstep's generator, with the outcomes of the model.
fn script(seed: u64, operations: usize) -> String {
    let mut generator = Generator::new(seed, Vec::new());
    let (mut text, mut done) = (String::new(), 0);
    while done < operations {
        let mut world = World::new(Linux::new(Kernel::LATEST));
        // Small numbers for names of threads, descriptors and mappings, which share no name.
        let mut names = BTreeMap::new();
        let mut number = |name: u32| {
            let next = names.len();
            *names.entry(name).or_insert(next)
        };
        text += &format!("{ROOT} fork {}\n", number(0));
        for _ in 0..generator.length() {
            let operation = generator.operation(&world);
            let [(expected, after)] = &world.clone().step(&operation)[..] else {
                panic!("this driver does nothing late: {operation:?}");
            };
            let lines = lines(&mut number, &world, &operation, expected);
            let Some(lines) = lines else { continue };
            text += &lines;
            world = after.clone();
            done += 1;
        }
        for (process, _) in world.processes() {
            text += &format!("{ROOT} kill {}\n", number(process.0));
        }
    }
    text
}

#[test]
fn the_header_agrees_with_the_model() {
    const OPERATIONS: usize = 20_000;
    let (file, script_file) = (built("lockstep", "tests/lockstep.c"), program("script"));
    let text = script(1, OPERATIONS);
    fs::write(&script_file, &text).expect("a file");
    let script_file = script_file.to_str().expect("UTF-8");
    let run = || exec(&["--carry", script_file], &[&file, script_file]);
    let Outcome { status, stdout, stderr } = run();
    assert_eq!(
        (status, stdout),
        (Some(0), format!("{} lines\n", text.lines().count())),
        "{stderr}"
    );
    // A wrong expectation is noticed: the errno of an enabling that succeeds.
    let right = text.lines().rfind(|line| line.contains(" enable ") && line.ends_with(" 0 0"));
    let right = right.expect("an ioctl");
    let wrong = format!("{} 1 0", &right[..right.len() - 4]);
    fs::write(script_file, text.replace(right, &wrong)).expect("a file");
    let Outcome { status, stdout, .. } = run();
    assert!(status == Some(1) && stdout.contains(": errno, 0"), "{stdout}");
}
