//! The header is current, has all symbols, and a C program can use the library.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Builds the libraries, which `cargo test` leaves out, and returns the path of one.
fn built(name: &str) -> PathBuf {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["build", "--quiet", "--package", env!("CARGO_PKG_NAME"), "--message-format=json"]);
    let messages = said(&mut cargo);
    let file = messages.split('"').find(|text| text.ends_with(&format!("/{name}")));
    file.expect("a built library").into()
}

#[track_caller]
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {}: {stderr}", output.status);
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Compares the generated header, or writes it.
#[test]
fn the_header_is_current() {
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_crate(env!("CARGO_MANIFEST_DIR"));
    let mut text = Vec::new();
    builder.with_config(config).generate().expect("a header").write(&mut text);
    if std::env::var_os("API_UPDATE").is_some() {
        fs::write(here("libkcov.h"), &text).expect("a written file");
    }
    let how = "run API_UPDATE=1 cargo test -p kcov-capi --test interface";
    let is_current = fs::read(here("libkcov.h")).is_ok_and(|file| file == text);
    assert!(is_current, "libkcov.h is stale; if you meant to change it, {how}");
}

/// The symbols of the shared library, which are its binary interface, are the header's functions.
#[test]
fn the_symbols_are_those_of_the_header() {
    let symbols = said(Command::new("nm").args(["-D", "--defined-only"]).arg(built("libkcov.so")));
    let symbols: BTreeSet<_> = symbols.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let header = fs::read_to_string(here("libkcov.h")).expect("the header");
    let words = header.lines().filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next());
    assert_eq!(symbols, words.filter(|word| word.starts_with("kcov_")).collect());
}

const WARNINGS: [&str; 4] = ["-Wall", "-Wextra", "-Wpedantic", "-Werror"];

/// Compiles a C program that includes the header.
fn compiled(program: &Path, libraries: &[&str]) {
    let mut compiler = Command::new("cc");
    compiler.arg("-std=c99").args(WARNINGS).arg("-o").arg(program);
    said(compiler.arg(here("tests/use.c")).args(libraries));
}

#[test]
fn a_program_uses_the_shared_and_the_static_library() {
    let directory = tempfile::tempdir().expect("a directory");
    let (shared, fixed) = (built("libkcov.so"), built("libkcov.a"));
    let path = format!("-Wl,-rpath,{}", shared.parent().expect("a directory").display());
    let text = |path: &Path| path.to_str().expect("UTF-8").to_string();
    for libraries in [vec![&*text(&shared), &path], vec![&*text(&fixed), "-lm", "-pthread", "-ldl"]]
    {
        let program = directory.path().join("use");
        compiled(&program, &libraries);
        assert_eq!(said(Command::new(program).arg(directory.path().join("map"))), "ok\n");
    }
}

#[test]
fn the_header_is_also_for_cpp() {
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c++11", "-fsyntax-only", "-x", "c++"]).args(WARNINGS);
    said(compiler.arg(here("libkcov.h")));
}
