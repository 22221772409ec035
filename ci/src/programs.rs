//! The guest programs of this workspace, built for guests: static, and in a
//! target directory of their own so that other builds keep theirs.

use crate::error::{Error, Phase, Result};
use crate::progress::Step;
use crate::run::{command, not_started, read};
use std::cell::OnceCell;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A binary of a workspace member.
#[derive(Clone, Copy, Debug)]
pub struct Program {
    /// The package.
    pub package: &'static str,
    /// The binary in it.
    pub binary: &'static str,
}

/// PID 1 of every guest.
pub const INIT: Program = Program { package: "kcov-vm-guest", binary: "kcov-vm-init" };

/// The program that misbehaves on request, for tests.
pub const FIXTURE: Program = Program { package: "kcov-vm-guest", binary: "kcov-vm-fixture" };

/// What `cargo vm test` runs unless it is told otherwise. It has to
/// understand `list` and `run --format ktap --declare WORDS [ID…]`.
pub const SUITE: Program = Program { package: "kcov-conformance", binary: "kcov-conformance" };

const TRIPLE: &str = "x86_64-unknown-linux-gnu";

/// The profile for programs of guests, in the workspace's `Cargo.toml`.
const PROFILE: &str = "guest";

/// Builds programs, each at most once.
#[derive(Debug, Default)]
pub struct Programs {
    init: OnceCell<PathBuf>,
    suite: OnceCell<PathBuf>,
}

impl Programs {
    /// The guests' init.
    pub fn init(&self) -> Result<&Path> {
        once(&self.init, INIT)
    }

    /// The workspace's test suite.
    pub fn suite(&self) -> Result<&Path> {
        once(&self.suite, SUITE)
    }

    /// Refuses ids that the suite does not have.
    pub fn validate_checks(&self, wanted: &[String]) -> Result<()> {
        let suite = self.suite()?;
        let list = read(command(suite).arg("list"))
            .map_err(|why| Error::unavailable(Phase::Image, why))?;
        let known: Vec<_> = list.lines().filter_map(|l| l.split_whitespace().next()).collect();
        match wanted.iter().find(|id| !known.contains(&id.as_str())) {
            None => Ok(()),
            Some(id) => Err(Error::usage(unknown_check(id, &known))),
        }
    }
}

fn once(cell: &OnceCell<PathBuf>, program: Program) -> Result<&Path> {
    if cell.get().is_none() {
        // Nobody else can have set it meanwhile: the cell is not shared.
        let _ = cell.set(build(program)?);
    }
    Ok(cell.get().expect("it was just set"))
}

/// Builds a program; where it lies.
pub fn build(program: Program) -> Result<PathBuf> {
    let Program { package, binary } = program;
    let fail = |why: String| Error::unavailable(Phase::Image, why);
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("/"));
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    let target = variable("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), Into::into);
    let target = target.join("kcov-vm");

    let mut cargo = Command::new(variable("CARGO").unwrap_or(OsString::from("cargo")));
    cargo.current_dir(workspace).args(["build", "--quiet", "--package", package]);
    cargo.args(["--bin", binary, "--profile", PROFILE, "--target", TRIPLE]);
    cargo.arg("--target-dir").arg(&target);
    // These would win over the flags for the target.
    cargo.env_remove("RUSTFLAGS").env_remove("CARGO_ENCODED_RUSTFLAGS");
    cargo.env("CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS", "-Ctarget-feature=+crt-static");
    let path = target.join(TRIPLE).join(PROFILE).join(binary);
    let step = (!path.exists()).then(|| Step::begin(format!("build {binary}"), None));
    let status = cargo.status().map_err(|error| fail(not_started("cargo", &error)))?;
    if !status.success() {
        return Err(fail(format!("cargo could not build {binary} for the guest")));
    }
    if let Some(step) = step {
        step.done();
    }
    Ok(path)
}

fn unknown_check(id: &str, known: &[&str]) -> String {
    let mut near: Vec<_> = known
        .iter()
        .map(|other| (distance(id, other), *other))
        .filter(|(distance, other)| other.contains(id) || *distance <= id.len().div_ceil(3))
        .collect();
    near.sort_unstable();
    let near: Vec<_> = near.into_iter().take(3).map(|(_, other)| other).collect();
    match near.as_slice() {
        [] => format!("no check `{id}`; `{} list` names all {}", SUITE.binary, known.len()),
        near => format!("no check `{id}`; near it: {}", near.join(", ")),
    }
}

/// How many letters have to be added, removed or changed.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, a) in one.bytes().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], index + 1);
        for (column, b) in other.bytes().enumerate() {
            let changed = diagonal + usize::from(a != b);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(diagonal + 1).min(row[column] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances_are_the_known_ones() {
        for (one, other, expected) in
            [("", "", 0), ("abc", "", 3), ("kitten", "sitting", 3), ("same", "same", 0)]
        {
            assert_eq!(distance(one, other), expected);
            assert_eq!(distance(other, one), expected);
        }
    }

    #[test]
    fn unknown_checks_are_answered_with_near_ones() {
        let known = ["linux.open.twice", "linux.enable.ebusy", "api.trace"];
        let message = unknown_check("linux.enable.ebsy", &known);
        assert_eq!(message, "no check `linux.enable.ebsy`; near it: linux.enable.ebusy");
        assert!(unknown_check("linux.open", &known).ends_with("linux.open.twice"));
        assert!(unknown_check("zzz", &known).contains("names all 3"));
    }
}
