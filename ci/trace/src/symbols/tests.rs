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

#[test]
fn names_come_from_the_running_kernels_addresses() {
    let text = "0000000000001000 T read\n0000000000001100 d data\n0000000000009000 t open\t[nfs]\n";
    let all = Symbols::Listed(text.lines().filter_map(code).collect());
    let moved = coverage(Some(0x800));
    // The call is before this address, in its own function.
    let shown = |pc| all.look_up(Pc::new(pc), &moved).to_string();
    assert_eq!(shown(0x802), "read+0x1");
    assert_eq!(shown(0x800), "??");
    assert_eq!(shown(0x8815), "open [nfs]+0x14");
    assert_eq!(all.look_up(Pc::new(0x1005), &coverage(None)).to_string(), "??");
}

#[test]
fn calls_of_a_machines_kernel_have_one_length() {
    let all = Symbols::Listed(vec![(0xffff_ffff_8100_0000, "read".into())]);
    let shown = |pc| all.look_up(Pc::new(pc), &coverage(Some(0))).to_string();
    assert_eq!(shown(0xffff_ffff_8100_0005), "read+0x0");
    assert_eq!(shown(0xffff_ffff_8100_0004), "??");
}

#[test]
fn paths_lead_forward() {
    assert_eq!(plain("/build/../source/./fs/read.c"), Path::new("/source/fs/read.c"));
    assert_eq!(plain("../fs/read.c"), Path::new("../fs/read.c"));
}

/// Compiles a program with the hook, as for a kernel.
fn compiled(directory: &Path) -> PathBuf {
    const SOURCE: &str = "\
volatile int sink;
void __sanitizer_cov_trace_pc(void) { }
static inline __attribute__((always_inline)) void inner(int i) {
    if (i)
        sink = 1;
}
__attribute__((noinline)) void outer(int i) {
    inner(i);
}
__attribute__((noinline)) void never(void) {
    sink = 2;
}
int main(int count, char **words) { outer(count); if (count > 9) never(); return 0; }
";
    let (source, program) = (directory.join("kernel.c"), directory.join("kernel"));
    fs::write(&source, SOURCE).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args(["-g", "-O2", "-no-pie", "-fno-optimize-sibling-calls"]);
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
    let symbols = Symbols::of_kernel(&file).expect("symbols");
    let coverage = coverage(None);
    let all: Vec<Place> =
        (start + 5..end).map(|pc| symbols.look_up(Pc::new(pc), &coverage)).collect();
    assert!(all.iter().all(|place| place.symbol == "outer"), "{all:?}");
    let inlined = all.iter().find(|place| place.frames.len() == 2).expect("inlined code");
    assert_eq!(inlined.frames[0].function, "inner");
    assert_eq!(inlined.frames[1].function, "outer");
    let (path, line) = inlined.frames[1].line.clone().expect("a line");
    assert_eq!((path, line), (directory.path().join("kernel.c"), 8));

    // Only `outer` was executed; `never` could have been.
    let mut thread = Thread::default();
    thread.count((start..end).map(Pc::new));
    let coverage = Coverage { threads: vec![thread], ..coverage };
    let text = lcov::render(&coverage, &symbols, &file).expect("a tracefile");
    assert!(text.starts_with("TN:\nSF:") && text.ends_with("end_of_record\n"), "{text}");
    for line in ["FNDA:1,outer", "FNDA:1,inner", "FNDA:0,never", "DA:8,1", "DA:11,0"] {
        assert!(text.lines().any(|found| found == line), "`{line}` is not in: {text}");
    }
}

#[test]
fn files_that_do_not_serve_say_why() {
    let none = Symbols::of_kernel(Path::new("/none/vmlinux")).err().expect("refused");
    assert!(none.to_string().starts_with("/none/vmlinux: "), "{none}");
    let own = std::env::current_exe().expect("this program");
    let error = lcov::render(&coverage(None), &Symbols::none(), &own).expect_err("refused");
    assert!(error.to_string().contains("no coverage hook"), "{error}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = compiled(directory.path());
    let strip = Command::new("strip").arg("--strip-debug").arg(&file).status();
    assert!(strip.expect("strip starts").success());
    let symbols = Symbols::of_kernel(&file).expect("symbols");
    let error = lcov::render(&coverage(None), &symbols, &file).expect_err("refused");
    assert!(error.to_string().contains("no debug information"), "{error}");
}
