//! Gives a program the files and variables that it has under cargo.

use crate::cache::MARK;
use crate::run::{command, read};
use crate::session::Task;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The variables with these prefixes are passed on.
const HANDED_ON: &[&str] = &["CARGO", "NEXTEST", "RUSTDOC_", "RUST_", "OUT_DIR"];

/// These hold the registries' tokens, so they are not passed on.
const KEPT_BACK: &[&str] = &["CARGO_REGISTRY", "CARGO_REGISTRIES"];

/// The variables that name the programs of the crate under test.
const PROGRAMS: &[&str] = &["CARGO_BIN_EXE_", "NEXTEST_BIN_EXE_"];

/// The variables that cargo and the crate's build script have set.
pub fn variables() -> Vec<(OsString, OsString)> {
    let begins = |text: &str, list: &[&str]| list.iter().any(|start| text.starts_with(start));
    let own = |text: &str| begins(text, HANDED_ON) && !begins(text, KEPT_BACK);
    let script = set_by_build_script();
    let is_meant = |text: &str| own(text) || script.iter().any(|name| name == text);
    env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_meant)).collect()
}

/// The names of the variables that the build script has set for the crate. Cargo keeps the script's
/// output beside its directory.
fn set_by_build_script() -> Vec<String> {
    let output = directory("OUT_DIR").map(|path| path.with_file_name("output"));
    let text = output.and_then(|path| fs::read_to_string(path).ok()).unwrap_or_default();
    let name = |line: &str| {
        let (_, rest) = line.strip_prefix("cargo:")?.split_once("rustc-env=")?;
        rest.split_once('=').map(|(name, _)| name.to_string())
    };
    text.lines().filter_map(name).collect()
}

/// Adds the workspace, the build script's files and the crate's programs.
pub fn equip(task: &mut Task, program: &Path, tree: bool) -> Result<(), String> {
    for root in workspace().into_iter().filter(|_| tree) {
        task.carried.add(&root).map_err(|why| {
            format!("{why}; add --no-tree to leave it out, and --carry PATH for a part of it")
        })?;
    }
    let programs = |text: &str| PROGRAMS.iter().any(|start| text.starts_with(start));
    let named = env::vars_os().filter(|(name, _)| name.to_str().is_some_and(programs));
    let made = directory("OUT_DIR").into_iter().chain(named.map(|(_, value)| value.into()));
    for path in made.filter(|path: &PathBuf| path.exists()) {
        task.carried.add(&path)?;
    }
    temporary(program).map_or(Ok(()), |tmp| task.carried.way(&tmp).map(drop))
}

/// The directory that a variable names.
fn directory(variable: &str) -> Option<PathBuf> {
    env::var_os(variable).map(PathBuf::from).filter(|path| path.is_dir())
}

/// The crate's directory and, if cargo tells, its workspace's.
fn workspace() -> Vec<PathBuf> {
    let Some(manifest) = directory("CARGO_MANIFEST_DIR") else { return Vec::new() };
    let root = env::var_os("CARGO").and_then(|cargo| {
        let mut command = command(cargo);
        command.args(["locate-project", "--workspace", "--message-format", "plain"]);
        command.arg("--manifest-path").arg(manifest.join("Cargo.toml"));
        Some(PathBuf::from(read(&mut command).ok()?.trim()).parent()?.to_path_buf())
    });
    root.into_iter().chain([manifest]).collect()
}

/// The directory that cargo provides for tests' files (`CARGO_TARGET_TMPDIR`).
/// Cargo tells only the compiler; it is next to the profile's directory.
fn temporary(program: &Path) -> Option<PathBuf> {
    let dependencies = program.parent().filter(|path| path.ends_with("deps"))?;
    let target = dependencies.parent()?.parent()?;
    // `--target` adds a level.
    [Some(target), target.parent()]
        .into_iter()
        .flatten()
        .map(|directory| directory.join("tmp"))
        .find(|tmp| tmp.is_dir() && tmp.with_file_name(MARK).exists())
}
