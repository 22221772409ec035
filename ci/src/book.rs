//! Runs `kcov-book`, which reads the claims.

use crate::suite::workspace;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result};
use kcov_vm::toolchain::cargo;
use std::ffi::OsStr;

/// The exit status of cargo if a build fails.
const NOT_BUILT: i32 = 101;

/// Runs one of its commands and returns the exit status.
pub fn run(words: &[&OsStr]) -> Result<u8> {
    let mut cargo = cargo();
    cargo.args(["run", "--quiet", "--package", "kcov-book", "--manifest-path"]);
    cargo.arg(workspace().join("Cargo.toml")).arg("--").args(words);
    let status = cargo.status().or_unavailable(Phase::Output, "cargo")?;
    match status.code().filter(|code| *code != NOT_BUILT).map(u8::try_from) {
        Some(Ok(code)) => Ok(code),
        _ => Err(Error::unavailable(Phase::Output, format!("kcov-book: {status}"))),
    }
}
