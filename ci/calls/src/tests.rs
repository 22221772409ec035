//! Compiled programs with a hook like a kernel's.

use super::*;
use std::fs;
use std::process::Command;

const HOOK: &str = "__sanitizer_cov_trace_pc";

fn compiled(options: &[&str]) -> Vec<u8> {
    let directory = tempfile::tempdir().expect("a directory");
    let (source, program) = (directory.path().join("kernel.c"), directory.path().join("kernel"));
    fs::write(&source, include_str!("kernel.c")).expect("a file");
    let mut compiler = Command::new("gcc");
    compiler.args([
        "-O2",
        "-fno-pie",
        "-no-pie",
        "-fcf-protection=none",
        "-fno-optimize-sibling-calls",
    ]);
    compiler.arg("-fsanitize-coverage=trace-pc").args(options);
    assert!(compiler.arg(&source).arg("-o").arg(&program).status().expect("gcc starts").success());
    fs::read(&program).expect("the program")
}

/// The functions that call the hook, and the number of calls.
fn per_function(bytes: &[u8]) -> Vec<(String, usize)> {
    let file = object::File::parse(bytes).expect("ELF");
    let found = Code::read(bytes).expect("code").calls(HOOK).expect("calls");
    let mut all = Vec::new();
    for symbol in file.symbols() {
        let inside = symbol.address()..symbol.address() + symbol.size();
        let count = found.iter().filter(|address| inside.contains(address)).count();
        if count > 0 {
            all.push((symbol.name().expect("a name").to_owned(), count));
        }
    }
    assert_eq!(found.len(), all.iter().map(|(_, count)| count).sum::<usize>(), "{found:?}");
    all.sort();
    all
}

#[test]
fn the_code_model_makes_no_difference() {
    let near = per_function(&compiled(&[]));
    let names: Vec<_> = near.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["main", "many", "nothing", "table"]);
    assert!(near.iter().any(|(name, count)| name == "table" && *count >= 7), "{near:?}");
    assert_eq!(per_function(&compiled(&["-mcmodel=large"])), near);
}

#[test]
fn a_function_may_end_with_a_jump_through_a_pointer() {
    let found = |option| {
        let code = Code::read(&compiled(&[option])).expect("code");
        let calls = code.calls("last").expect("a function");
        assert_eq!(calls.len(), 1, "the program calls it once: {calls:x?}");
        calls.is_subset(&code.through_pointers())
    };
    assert!(!found("-fno-optimize-sibling-calls"));
    assert!(found("-foptimize-sibling-calls"));
}

#[test]
fn a_static_call_may_call_any_function() {
    let mut code = Code::read(&compiled(&[])).expect("code");
    let calls = code.calls("last").expect("a function");
    assert!(calls.is_disjoint(&code.through_pointers()));
    for name in code.symbols.values_mut().flatten().filter(|name| *name == "last") {
        *name = "__SCT__last".into();
    }
    assert!(calls.is_subset(&code.through_pointers()));
}

#[test]
fn a_function_may_lack_a_symbol() {
    let mut code = Code::read(&compiled(&["-foptimize-sibling-calls"])).expect("code");
    let with = code.through_pointers();
    code.symbols.retain(|_, names| !names.iter().any(|name| name == "last"));
    assert_eq!(code.through_pointers(), with);
}

#[test]
fn a_program_without_the_function_has_no_calls_of_it() {
    let own = fs::read(std::env::current_exe().expect("this program")).expect("its file");
    assert_eq!(Code::read(&own).expect("code").calls(HOOK), None);
}

/// The type of a call's relocation, and the distance to the return address.
const TYPES: &[(u32, u64)] = &[(object::elf::R_X86_64_PLT32, 4)];

fn is_hook(name: &str) -> bool {
    name == HOOK
}

#[test]
fn relocations_tell_what_the_code_does() {
    let program = compiled(&["-Wl,--emit-relocs"]);
    let relocated = relocated_calls(&program, TYPES, is_hook).expect("a program");
    let found: BTreeSet<u64> = relocated.into_values().flatten().collect();
    assert_eq!(Code::read(&program).expect("code").calls(HOOK), Some(found));
    let without = relocated_calls(&compiled(&[]), TYPES, is_hook).expect("a program");
    assert!(without.is_empty(), "{without:?}");
}

#[test]
fn a_reference_that_is_no_known_call_is_an_error() {
    let why = relocated_calls(&compiled(&["-c"]), &[], is_hook).expect_err("no type is known");
    assert!(why.starts_with(".text: __sanitizer_cov_trace_pc is not called at 0x"), "{why}");
    // In the large code model the relocation is that of a load.
    let large = compiled(&["-c", "-mcmodel=large"]);
    assert!(relocated_calls(&large, TYPES, is_hook).is_err());
}

#[test]
fn calls_of_a_module_are_offsets_in_sections() {
    let module = compiled(&["-c"]);
    let calls = relocated_calls(&module, TYPES, is_hook).expect("an object");
    let sections: Vec<&str> = calls.keys().map(|(section, _)| section.as_str()).collect();
    assert_eq!(sections, [".text", ".text.startup"]);
    let linked = Code::read(&compiled(&[])).expect("a program").calls(HOOK).expect("the hook");
    assert_eq!(calls.values().map(BTreeSet::len).sum::<usize>(), linked.len());
    // The linker moves a section as a whole.
    let text = &calls[&(".text".to_owned(), HOOK.to_owned())];
    let first = text.first().expect("a call");
    let moved = |by: u64| text.iter().all(|address| linked.contains(&(address + by)));
    assert!(linked.iter().filter(|at| *at >= first).any(|at| moved(at - first)), "{text:?}");
    assert!(
        relocated_calls(&module, TYPES, |name| name == "table_of").is_ok_and(|all| all.is_empty())
    );
    assert!(relocated_calls(b"no object", TYPES, |_| true).is_err());
}
