//! The header and the list of symbols are current, and a C program can use the library.

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

/// Compares a generated file, or writes it.
#[track_caller]
fn assert_current(name: &str, text: &str) {
    if std::env::var_os("API_UPDATE").is_some() {
        fs::write(here(name), text).expect("a written file");
    }
    let file = fs::read_to_string(here(name)).unwrap_or_default();
    let how = "run API_UPDATE=1 cargo test -p kcov-capi --test interface";
    assert!(file == text, "{name} is stale; if you meant to change it, {how}\n{text}");
}

#[test]
fn the_header_is_current() {
    let config = cbindgen::Config::from_file(here("cbindgen.toml")).expect("a configuration");
    let builder = cbindgen::Builder::new().with_crate(env!("CARGO_MANIFEST_DIR"));
    let mut text = Vec::new();
    builder.with_config(config).generate().expect("a header").write(&mut text);
    assert_current("libkcov.h", &String::from_utf8(text).expect("UTF-8"));
}

/// The symbols of the shared library, which are its binary interface.
#[test]
fn the_symbols_are_current() {
    let symbols = said(Command::new("nm").args(["-D", "--defined-only"]).arg(built("libkcov.so")));
    let names = symbols.lines().filter_map(|line| line.split(' ').nth(2));
    let text: String = names.map(|name| format!("{name}\n")).collect();
    assert_current("symbols.txt", &text);
    let header = fs::read_to_string(here("libkcov.h")).expect("the header");
    for name in text.lines() {
        assert!(header.contains(&format!("{name}(")), "{name} is not in the header");
    }
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
