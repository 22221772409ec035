//! Gives a program the environment that cargo would give it.

use crate::cache::MARK;
use crate::carry;
use crate::session::Task;
use std::env;
use std::path::{Path, PathBuf};

/// The variables with these prefixes are passed on.
const HANDED_ON: &[&str] = &["CARGO", "NEXTEST", "RUSTDOC_", "RUST_"];

/// These hold the registries' tokens, so they are not passed on.
const KEPT_BACK: &[&str] = &["CARGO_REGISTRY", "CARGO_REGISTRIES"];

/// The variables that name the programs of the crate under test.
const PROGRAMS: &[&str] = &["CARGO_BIN_EXE_", "NEXTEST_BIN_EXE_"];

/// Adds the crate's directory, the environment, and the program at its own
/// path.
pub fn equip(task: &mut Task, program: &Path, tree: bool) -> Result<(), String> {
    let directory = |name| env::var_os(name).map(PathBuf::from).filter(|path| path.is_dir());
    // Cargo runs tests in the package's directory even when it does not set a
    // working directory.
    let manifest = directory("CARGO_MANIFEST_DIR");
    if let Some(root) = manifest.filter(|_| tree) {
        task.carried.add(&root).map_err(|why| {
            format!("{why}; add --no-tree to leave it out, and --carry PATH for a part of it")
        })?;
    }
    task.program.path = carry::place(program)?;
    if let Some(tmp) = temporary(program) {
        let at = carry::place(&tmp)?;
        task.carried.directory(&at, 0o777);
    }
    let here = env::current_dir().ok().filter(|path| task.carried.has(path));
    task.directory = here.and_then(|path| Some(path.to_str()?.to_string()));
    for (name, value) in env::vars_os() {
        let Some(text) = name.to_str() else { continue };
        let begins = |list: &[&str]| list.iter().any(|start| text.starts_with(start));
        if begins(HANDED_ON) && !begins(KEPT_BACK) {
            if begins(PROGRAMS) && Path::new(&value).is_file() {
                task.carried.add(Path::new(&value))?;
            }
            task.environment.push((name, value));
        }
    }
    Ok(())
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
