//! The C header `kcov/capi/kcov.h`: every compiler accepts it for every architecture, its programs
//! do in a guest what they say, and it agrees with the model of the driver.
//!
//! Needs the feature `guest-tests`, like tests/guest.rs; the compilers clang and tcc; and zig, as
//! `KCOV_ZIG`. Step `c` of ci/check has all of them. The feature `matrix-tests` adds other kernels.

mod common {
    pub mod outcome;
}

use common::outcome::{Outcome, outcome};
use kcov_conformance::lockstep::Generator;
use kcov_model::linux::{BUS, Kernel, Linux};
use kcov_model::{
    Access, D, Errno, Geometry, Handle, M, Memory, Mode, Operation, Outcome as Expected,
    Protection, Request, T, World,
};
use kcov_sys::{errno, linux};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    "tests/all.c",
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
    std::fs::create_dir_all(&directory).expect("a directory");
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

fn vm(words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_kcov-ci"));
    command.args(words);
    command
}

/// Runs a program in a guest, with input.
#[track_caller]
fn exec(options: &[&str], words: &[&str], input: &str) -> Outcome {
    let mut command = vm(&["exec"]);
    command.args(options).arg("--stdin").args(["linux-uml", "--"]).args(words);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the runner starts");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    Outcome {
        status: output.status.code(),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

#[test]
fn every_compiler_accepts_the_header() {
    for name in PROGRAMS {
        for before in ["", "-DFIRST", "-DLAST"] {
            if !before.is_empty() && *name != "tests/all.c" {
                continue;
            }
            let file = source(name);
            let object = program("accepted.o");
            let rest =
                ["-O2", "-c", &file, "-o", object.to_str().expect("UTF-8"), "-DUNUSED", before];
            let rest = &rest[..rest.len() - usize::from(before.is_empty())];
            for cc in ["gcc", "clang"] {
                succeeds(Command::new(cc).arg("-std=c99").args(WARNINGS).args(rest));
                let c_plus_plus = ["-x", "c++", "-std=c++11"];
                succeeds(Command::new(cc).args(c_plus_plus).args(WARNINGS).args(rest));
            }
            succeeds(Command::new("tcc").args(["-Wall", "-Werror", "-std=c99"]).args(rest));
        }
    }
}

#[test]
fn zig_accepts_the_header_for_each_architecture() {
    let object = program("zig.o");
    let object = object.to_str().expect("UTF-8");
    for target in ZIG_TARGETS {
        // zig warns of its own flag there.
        let pic = if target.starts_with("mips64") { "-fPIC" } else { "-O2" };
        for before in ["-DUNUSED", "-DFIRST", "-DLAST"] {
            let rest = [pic, before, "-c", &source("tests/all.c"), "-o", object];
            succeeds(zig("cc", target).arg("-std=c99").args(WARNINGS).args(rest));
            let c_plus_plus = ["-x", "c++", "-std=c++11"];
            succeeds(zig("c++", target).args(c_plus_plus).args(WARNINGS).args(rest));
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
    let Outcome { status, stderr, .. } = outcome(command.args([include, source("tests/all.c")]));
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

/// 32-bit words, and the other byte order with the other encoding of requests.
#[cfg(feature = "matrix-tests")]
#[test]
fn the_ktap_programs_pass_on_other_architectures() {
    ktap_programs_pass("linux-uml-i386", Some("x86-linux-musl"), true);
    ktap_programs_pass("linux-7-ppc64", Some("powerpc64-linux-musl"), false);
}

#[test]
fn a_kernel_without_comparisons_is_told() {
    let file = built("life-nocmp", "tests/life.c");
    let said = succeeds(&mut vm(&["exec", "linux-uml-nocmp", "--", &file]));
    assert!(said.contains("# without comparisons\nok 8 comparisons\n"), "{said}");
}

#[test]
fn kcovtrace_prints_program_counters() {
    let (file, idle) = (built("kcovtrace", "examples/kcovtrace.c"), built("idle", "tests/idle.c"));
    let Outcome { status, stdout, stderr } = exec(&["--carry", &idle], &[&file, &idle, "7"], "");
    assert_eq!((status, stderr.as_str()), (Some(7), ""));
    let addresses: Vec<_> =
        stdout.lines().map(|line| line.strip_prefix("0x").expect(line)).collect();
    assert!(addresses.len() > 300, "{}", addresses.len());
    assert!(addresses.iter().all(|it| u64::from_str_radix(it, 16).is_ok_and(|pc| pc > 0xffff)));
    let missing = exec(&[], &[&file, "/none"], "");
    assert_eq!((missing.status, missing.stderr.contains("/none: ")), (Some(125), true));
}

/// The program of the book's page.
#[test]
fn the_page_has_a_program() {
    let page = include_str!("../../docs/src/from-c.md");
    let text = page.split("```c\n").nth(1).and_then(|rest| rest.split("```").next());
    let (source, file) = (program("page.c"), program("page"));
    std::fs::write(&source, text.expect("a program")).expect("a file");
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
    let file = built("forkserver", "examples/forkserver.c");
    let Outcome { status, stdout, stderr } = exec(&[], &[&file], "AA\nAA\nAA\nCC\n\nBCBC\n");
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
    let file = built("showmap", "examples/showmap.c");
    let (idle, afl) = (built("idle-of-map", "tests/idle.c"), built("afl", "tests/afl.c"));
    let own = exec(&["--carry", &idle], &[&file, &idle], "");
    assert_eq!((own.status, own.stderr.as_str()), (Some(0), ""));
    assert!(own.stdout.lines().count() > 100, "{}", own.stdout);
    // As AFL++ starts it: the status of the command and the number of edges, with two sizes.
    let carried = ["--carry", &idle, "--carry", &file];
    let Outcome { status, stdout, stderr } = exec(&carried, &[&afl, &file, &idle, "6"], "");
    assert_eq!((status, stderr.as_str()), (Some(0), ""), "{stdout}");
    let edges: Vec<u64> = stdout.lines().map(|line| line.parse().expect(line)).collect();
    assert!(edges.len() == 2 && edges[0] > 100 && edges[1] > 100, "{stdout}");
}

/// Names of one run, by small numbers in the order of their creation.
#[derive(Default)]
struct Names {
    descriptors: BTreeMap<u32, usize>,
    maps: BTreeMap<u32, usize>,
    slots: BTreeMap<T, usize>,
}

fn number<K: Ord>(names: &mut BTreeMap<K, usize>, key: K) -> usize {
    let next = names.len();
    *names.entry(key).or_insert(next)
}

impl Names {
    fn descriptor(&mut self, name: D) -> usize {
        number(&mut self.descriptors, name.0)
    }

    fn map(&mut self, name: M) -> usize {
        number(&mut self.maps, name.0)
    }

    fn start(&mut self, thread: T) -> usize {
        let free = (0..).find(|slot| !self.slots.values().any(|used| used == slot));
        *self.slots.entry(thread).or_insert(free.expect("a slot"))
    }
}

/// The slot of the process that is never traced.
const ROOT: usize = 8;

fn errno_of(errno: Errno) -> i32 {
    errno.number(errno::linux::ALL)
}

/// The errno of an outcome, or 0.
fn refusal(expected: &Expected) -> i32 {
    match expected {
        Expected::Refused(errno) => errno_of(*errno),
        _ => 0,
    }
}

/// A handle of the model as a number for this machine. No bus has this number.
fn handle(handle: Handle) -> u64 {
    match handle {
        Handle(0 | linux::KCOV_SUBSYSTEM_USB) => handle.0,
        BUS => linux::KCOV_SUBSYSTEM_USB | 0x5000_0000,
        Handle(number) => number | 0x4000_0000,
    }
}

/// The line of an ioctl: S, E, D, R, or U for an unknown one.
fn ask(request: &Request, descriptor: usize, errno: i32) -> Option<String> {
    Some(match request {
        Request::Size(words) => format!("S {descriptor} {errno} {words}"),
        Request::Enable(mode) => format!("E {descriptor} {errno} {mode}"),
        Request::Disable(argument) => format!("D {descriptor} {errno} {argument}"),
        Request::SizeOfOtherWidth => {
            format!("U {descriptor} {errno} {}", linux::KCOV_INIT_TRACE32)
        }
        Request::Unknown => format!("U {descriptor} {errno} {}", 0x63ff),
        Request::RemoteEnable(remote) if remote.memory == Memory::Whole => {
            let handles: String = remote.array().map(|it| format!(" {}", handle(it))).collect();
            let (mode, area, common) = (remote.mode, remote.area, handle(remote.common));
            let count = remote.array().len();
            format!("R {descriptor} {errno} {mode} {area} {common} {count}{handles}")
        }
        // The header passes a whole structure.
        _ => return None,
    })
}

/// The lines of an operation for the program. None if the header has nothing to do with it.
fn lines(
    names: &mut Names,
    world: &World<Linux>,
    operation: &Operation,
    expected: &Expected,
) -> Option<Vec<String>> {
    let slot = names.slots[&operation.thread()];
    let process = world.process_of(operation.thread()).expect("a process");
    let errno = refusal(expected);
    let one = |line: String| vec![format!("{slot} {line}")];
    Some(match *operation {
        Operation::Open { descriptor, access, .. } => {
            let through_header = u8::from(access == Access::ReadWrite);
            let writes = u8::from(access == Access::WriteOnly);
            one(format!("open {through_header} {} {writes}", names.descriptor(descriptor)))
        }
        Operation::Duplicate { descriptor, new, .. } => {
            one(format!("dup {} {}", names.descriptor(descriptor), names.descriptor(new)))
        }
        Operation::Pass { descriptor, to, new, .. } => {
            let (old, new) = (names.descriptor(descriptor), names.descriptor(new));
            vec![format!("{slot} pass {old}"), format!("{} take {new}", names.slots[&to])]
        }
        Operation::Close { descriptor, .. } => {
            one(format!("close {}", names.descriptor(descriptor)))
        }
        Operation::Ask { descriptor, ref request, .. } => {
            one(ask(request, names.descriptor(descriptor), errno)?)
        }
        Operation::Map { descriptor, map, geometry, .. } => {
            let Geometry { bytes, offset, writable, private, .. } = geometry;
            let how = u8::from(writable) | u8::from(private) << 1;
            let (map, descriptor) = (names.map(map), names.descriptor(descriptor));
            one(format!("map {map} {descriptor} {bytes} {offset} {how} {errno}"))
        }
        Operation::Unmap { map, .. } => one(format!("unmap {}", names.map(map))),
        Operation::Protect { map, protection, .. } => {
            let prot = match protection {
                Protection::None => 0,
                Protection::Read => 1,
                Protection::ReadWrite => 3,
            };
            one(format!("protect {} {prot} {errno}", names.map(map)))
        }
        Operation::Trace { thread, map, count } => {
            let mode = world.recording(thread, map).map_or(Mode::Pc, |recording| recording.mode);
            let mode = u8::from(mode == Mode::Cmp);
            let (word, most) = match expected {
                Expected::Unchanged => ("unchanged", 0),
                Expected::Grown(most) => ("grown", *most),
                _ => ("anything", 0),
            };
            one(format!("trace {} {count} {word} {most} {mode}", names.map(map)))
        }
        Operation::Store { map, word, .. } => one(format!("store {} {word}", names.map(map))),
        Operation::Load { map, .. } => {
            let word = match expected {
                Expected::Word(word) => i64::try_from(*word).expect("a small word"),
                _ => -1,
            };
            one(format!("load {} {word}", names.map(map)))
        }
        Operation::StartThread { new, .. } => one(format!("thread {}", names.start(new))),
        Operation::EndThread { .. } => {
            vec![format!("{slot} end"), format!("{} join {slot}", names.slots[&process])]
        }
        Operation::Fork { new, .. } => one(format!("fork {}", names.start(new))),
        Operation::Exit { .. } => {
            vec![format!("{slot} exit"), format!("{ROOT} wait {}", names.slots[&process])]
        }
        Operation::Kill { .. } => vec![format!("{ROOT} kill {}", names.slots[&process])],
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
        let mut names = Names::default();
        writeln!(text, "{ROOT} fork {}", names.start(T(0))).expect("a string");
        for _ in 0..generator.length() {
            let operation = generator.operation(&world);
            let [(expected, after)] = &world.clone().step(&operation)[..] else {
                panic!("this driver does nothing late: {operation:?}");
            };
            let Some(lines) = lines(&mut names, &world, &operation, expected) else { continue };
            for line in lines {
                writeln!(text, "{line}").expect("a string");
            }
            world = after.clone();
            done += 1;
            names.slots.retain(|thread, _| world.process_of(*thread).is_some());
        }
        for (process, _) in world.processes() {
            writeln!(text, "{ROOT} kill {}", names.slots[&process]).expect("a string");
        }
    }
    text
}

#[test]
fn the_header_agrees_with_the_model() {
    const OPERATIONS: usize = 20_000;
    let (file, script_file) = (built("lockstep", "tests/lockstep.c"), program("script"));
    let text = script(1, OPERATIONS);
    std::fs::write(&script_file, &text).expect("a file");
    let script_file = script_file.to_str().expect("UTF-8");
    let run = || exec(&["--carry", script_file], &[&file, script_file], "");
    let Outcome { status, stdout, stderr } = run();
    assert_eq!(
        (status, stdout),
        (Some(0), format!("{} lines\n", text.lines().count())),
        "{stderr}"
    );
    // A wrong expectation is noticed: the last ioctl that succeeds.
    let place = text.rmatch_indices(" 0 0\n").find(|(at, _)| {
        let line = text[..*at].rsplit('\n').next().unwrap_or_default();
        line.contains(" E ") || line.contains(" D ")
    });
    let mut wrong = text.clone();
    wrong.replace_range(place.expect("an ioctl").0..place.expect("an ioctl").0 + 2, " 1");
    std::fs::write(script_file, wrong).expect("a file");
    let Outcome { status, stdout, .. } = run();
    assert!(status == Some(1) && stdout.contains(": errno, 0"), "{stdout}");
}
