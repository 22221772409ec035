//! Tests handwritten lists, and files that a compiler made with the same hook as a
//! kernel's.

use super::*;
use crate::coverage::Thread;
use crate::modules::Module;
use crate::report::lcov;
use object::{Object as _, ObjectSymbol as _};
use std::process::Command;

fn coverage(slide: Option<u64>) -> Coverage {
    let module = Module { name: "nfs".into(), start: 0x9000, size: 0x100 };
    Coverage { slide, modules: [module].into_iter().collect(), ..Coverage::default() }
}

fn one(symbols: &Symbols, pc: u64, coverage: &Coverage) -> Place {
    symbols.look_up(&[Pc::new(pc)], coverage).remove(0)
}

#[test]
fn names_come_from_the_running_kernels_addresses() {
    let text = "0000000000001000 T read\n0000000000001100 d data\n0000000000009000 t open\t[nfs]\n";
    let all = Symbols::Listed(text.lines().filter_map(code).collect());
    let moved = coverage(Some(0x800));
    // The call is before this address, in its own function.
    let shown = |pc| one(&all, pc, &moved).to_string();
    assert_eq!(shown(0x802), "read+0x1");
    assert_eq!(shown(0x800), "??");
    assert_eq!(shown(0x8815), "open [nfs]+0x14");
    // Data before the module, and the module's end.
    assert_eq!(shown(0x88ff), "open [nfs]+0xfe");
    assert_eq!(shown(0x8901), "??");
    assert_eq!(one(&all, 0x1005, &coverage(None)).to_string(), "??");
}

#[test]
fn calls_of_a_machines_kernel_have_one_length() {
    let all = Symbols::Listed(vec![
        (0xffff_ffff_8100_0000, "read".into()),
        (0xffff_ffff_8200_0000, "_etext".into()),
        (0xffff_ffff_8300_0000, "init".into()),
    ]);
    let shown = |pc| one(&all, pc, &coverage(Some(0))).to_string();
    assert_eq!(shown(0xffff_ffff_8100_0005), "read+0x0");
    assert_eq!(shown(0xffff_ffff_8100_0004), "??");
    // Between the kernel's code and that of its start, and after the last symbol.
    assert_eq!(shown(0xffff_ffff_8200_0008), "??");
    assert_eq!(shown(0xffff_ffff_8300_0008), "??");
    assert_eq!(shown(0xffff_ffff_ffff_ff00), "??");
}

#[test]
fn paths_lead_forward() {
    assert_eq!(plain("/build/../source/./fs/read.c"), Path::new("/source/fs/read.c"));
    assert_eq!(plain("../fs/read.c"), Path::new("../fs/read.c"));
}

/// Compiles a program with the hook, as for a kernel.
fn compiled(directory: &Path) -> PathBuf {
    let (source, program) = (directory.join("kernel.c"), directory.join("kernel"));
    fs::write(&source, include_str!("kernel.c")).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O2", "-no-pie", "-fno-optimize-sibling-calls", "-Wl,--build-id"]);
    compiler.arg("-fsanitize-coverage=trace-pc").arg(&source).arg("-o").arg(&program);
    assert!(compiler.status().expect("gcc starts").success());
    program
}

#[test]
fn a_file_gives_lines_and_what_was_inlined() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = compiled(directory.path());
    let bytes = fs::read(&file).expect("the program");
    let parsed = object::File::parse(&*bytes).expect("ELF");
    let outer = parsed.symbols().find(|symbol| symbol.name() == Ok("outer")).expect("a symbol");
    let (start, end) = (outer.address(), outer.address() + outer.size());
    let kernel = Image::read(&file).expect("an image").kernel;
    let symbols = Symbols::of_image(&file, &kernel).expect("symbols");
    let coverage = Coverage { kernel, ..coverage(None) };
    let pcs: Vec<Pc> = (start + 5..end).map(Pc::new).collect();
    let all = symbols.look_up(&pcs, &coverage);
    // Two threads find the same.
    let many = symbols.look_up(&pcs.repeat(20_000 / pcs.len()), &coverage);
    assert!(many.chunks(pcs.len()).all(|some| some == all));
    assert!(all.iter().all(|place| &*place.symbol == "outer"), "{all:?}");
    let inlined = all.iter().find(|place| place.frames.len() == 2).expect("inlined code");
    assert_eq!(&*inlined.frames[0].function, "inner");
    assert_eq!(&*inlined.frames[1].function, "outer");
    let (path, line) = inlined.frames[1].line.clone().expect("a line");
    assert_eq!((&*path, line), (&*directory.path().join("kernel.c"), 10));

    // A run executed only `outer`; `never` could have been.
    let run = |start, end| {
        let mut thread = Thread::default();
        thread.count((start..end).map(Pc::new));
        Coverage { threads: vec![thread], ..coverage.clone() }
    };
    let rendered = |coverage, lines: &[&str]| {
        let text = lcov::render(&coverage, &symbols).expect("a tracefile");
        assert!(text.starts_with("TN:\nSF:") && text.ends_with("end_of_record\n"), "{text}");
        for line in lines {
            assert!(text.lines().any(|found| found == *line), "`{line}` is not in: {text}");
        }
    };
    let first = run(start, end);
    let lines = ["FNDA:1,outer", "FNDA:1,inner", "FNDA:0,never", "DA:10,1", "DA:13,0"];
    rendered(first.clone(), &lines);
    // Another run executed both.
    let never = parsed.symbols().find(|symbol| symbol.name() == Ok("never")).expect("a symbol");
    let both = first.merged(run(start, end)).expect("the same kernel");
    let both = both.merged(run(never.address(), never.address() + never.size()));
    let lines = ["FNDA:2,outer", "FNDA:2,inner", "FNDA:1,never", "DA:10,2", "DA:13,1"];
    rendered(both.expect("the same kernel"), &lines);
}

#[test]
fn addresses_outside_of_the_image_have_no_name() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = compiled(directory.path());
    let image = Image::read(&file).expect("an image");
    let bytes = fs::read(&image.file).expect("the program");
    let parsed = object::File::parse(&*bytes).expect("ELF");
    let last =
        parsed.symbols().map(|symbol| symbol.address() + symbol.size()).max().expect("symbols");
    let coverage = Coverage { kernel: image.kernel.clone(), ..coverage(None) };
    let symbols = Symbols::of_image(&file, &coverage.kernel).expect("symbols");
    for pc in [last + 0x10, 0x7fff_ffff_0000, 0xffff_ffff_8000_0010, u64::MAX] {
        assert_eq!(one(&symbols, pc, &coverage), Place::default(), "{pc:#x}");
    }
}

#[test]
fn files_that_do_not_serve_say_why() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = compiled(directory.path());
    let image = Image::read(&file).expect("an image").kernel;
    assert_eq!(image.release, "7.3-test");
    let refused = |file: &Path, why: &str| {
        let error = Symbols::of_image(file, &image).err().expect("refused").to_string();
        assert!(error.starts_with(&format!("{}: ", file.display())), "{error}");
        assert!(error.contains(why), "{error}");
    };
    refused(Path::new("/none/vmlinux"), "No such file");
    refused(&std::env::current_exe().expect("this program"), "is not a kernel's image");
    refused(directory.path(), "is not a regular file");
    let other = directory.path().join("other");
    for (content, why) in [
        (&b""[..], "is not a kernel's image (ELF)"),
        (b"\x1f\x8b\x08\0", "name the file `vmlinux` of its build, unpacked"),
        (b"\x7fELF", "other: "),
    ] {
        fs::write(&other, content).expect("a file");
        refused(&other, why);
    }

    // Another build of the same release, and one whose build id is not known.
    let recorded = |build: Option<&str>, banner: &str| Kernel {
        release: "7.3-test".into(),
        build: build.map(str::to_owned),
        banner: Some(banner.to_owned()),
    };
    let banner = image.banner.clone().expect("a text");
    let of = |recorded| Symbols::of_image(&file, &recorded).err().map(|error| error.to_string());
    let error = of(recorded(Some("12ab"), &banner)).expect("refused");
    let both = ["(build id 12ab)", &format!("is {image}")];
    assert!(both.iter().all(|kernel| error.contains(kernel)), "{error}");
    assert_eq!(of(recorded(None, &banner)), None);
    assert!(of(recorded(None, "Linux version 7.3-test (gcc) #2")).is_some());
    assert!(of(Kernel::default()).is_some_and(|why| why.contains("nothing shows")));

    let strip = |how| {
        let strip = Command::new("strip").arg(how).arg(&file).status();
        assert!(strip.expect("strip starts").success());
    };
    strip("--strip-debug");
    let symbols = Symbols::of_image(&file, &image).expect("symbols");
    let error = lcov::render(&coverage(None), &symbols).expect_err("refused");
    assert!(error.to_string().contains("no debug information"), "{error}");
    strip("--strip-all");
    refused(&file, "has no symbols");
}

#[test]
fn an_image_without_the_hook_has_no_tracefile() {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, file) = (directory.path().join("a.c"), directory.path().join("a"));
    let text = "const char linux_banner[] = \"Linux version 1\"; int main(void) { return 0; }";
    fs::write(&source, text).expect("a file");
    let compiled = Command::new("gcc").arg(&source).arg("-o").arg(&file).status();
    assert!(compiled.expect("gcc starts").success());
    let kernel = Image::read(&file).expect("an image").kernel;
    let symbols = Symbols::of_image(&file, &kernel).expect("symbols");
    let error = lcov::render(&coverage(None), &symbols).expect_err("refused");
    assert!(error.to_string().contains("no coverage hook"), "{error}");
}
