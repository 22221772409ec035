//! Finds the user's program and checks that it can start, before anything is built or booted.

use crate::run::locate;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// Finds the program as a shell would.
pub fn find(word: &OsStr) -> Result<PathBuf, String> {
    let shown = Path::new(word).display();
    let found = match word.to_str() {
        Some(name) if !name.contains('/') => locate(name).ok_or_else(|| {
            let here = Path::new(name).is_file();
            let hint = if here {
                format!("; for the one in this directory, write ./{name}")
            } else {
                String::new()
            };
            format!("{name}: there is no such program in PATH{hint}")
        })?,
        _ => PathBuf::from(word),
    };
    let error = |error: std::io::Error| format!("{shown}: {error}");
    if fs::metadata(&found).map_err(error)?.is_dir() {
        return Err(format!("{shown}: is a directory, not a program"));
    }
    // Guest paths cannot contain `..`. Links stay, as a program may look at its own name.
    let whole = std::path::absolute(&found).map_err(error)?;
    let resolved = found.canonicalize().map_err(error)?;
    let plain = whole.components().all(|part| part != Component::ParentDir);
    Ok(if plain { whole } else { resolved })
}

/// Refuses a program that the guest cannot start: one that is not executable, or a script whose
/// interpreter is not `carried`.
pub fn check(program: &Path, carried: &[PathBuf]) -> Result<(), String> {
    let shown = program.display();
    let error = |error: std::io::Error| format!("{shown}: {error}");
    if fs::metadata(program).map_err(error)?.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown}: is not executable; run chmod +x"));
    }
    let mut start = Vec::new();
    File::open(program).and_then(|file| file.take(256).read_to_end(&mut start)).map_err(error)?;
    let Some(interpreter) = interpreter(&start) else { return Ok(()) };
    let there = interpreter.display();
    let has =
        |path: &PathBuf| std::path::absolute(path).is_ok_and(|path| interpreter.starts_with(path));
    if !interpreter.is_file() {
        return Err(format!("{shown}: is a script for {there}, which is not on this host"));
    }
    if !carried.iter().any(has) {
        return Err(format!(
            "{shown}: is a script for {there}, which is not in the guest; add --carry {there}"
        ));
    }
    Ok(())
}

/// Parses a script's interpreter from its first line.
fn interpreter(start: &[u8]) -> Option<PathBuf> {
    let line = start.strip_prefix(b"#!")?.split(|&byte| byte == b'\n').next()?;
    let name = line.trim_ascii_start().split(u8::is_ascii_whitespace).next()?;
    Some(PathBuf::from(OsStr::from_bytes(name)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let named = |start: &[u8]| interpreter(start);
        assert_eq!(named(b"#!/bin/sh\necho"), Some("/bin/sh".into()));
        assert_eq!(named(b"#! /usr/bin/env python3"), Some("/usr/bin/env".into()));
        assert_eq!(named(b"\x7fELF"), None);
        assert_eq!(named(b"echo\n#!/bin/sh"), None);
    }
}
