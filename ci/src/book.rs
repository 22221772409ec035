//! Runs `kcov-book`, which reads the claims.

use crate::suite::workspace;
use kcov_vm::error::{Error, OrUnavailable as _, Phase, Result};
use std::ffi::OsStr;
use std::process::Command;

/// Runs one of its commands and returns the exit status.
pub fn run(words: &[&OsStr]) -> Result<u8> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.args(["run", "--quiet", "--package", "kcov-book", "--manifest-path"]);
    cargo.arg(workspace().join("Cargo.toml")).arg("--").args(words);
    let status = cargo.status().or_unavailable(Phase::Output, "cargo")?;
    match status.code().and_then(|code| u8::try_from(code).ok()) {
        // Cargo's own status: it could not build the program.
        Some(101) | None => Err(Error::unavailable(Phase::Output, format!("kcov-book: {status}"))),
        Some(code) => Ok(code),
    }
}
