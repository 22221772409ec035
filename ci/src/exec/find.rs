//! The program that the user named: where it is, and whether it could start at all. That is said
//! before anything is built or booted.

use crate::run::locate;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Component, Path, PathBuf};

/// The program that a shell would run.
pub fn find(word: &OsStr) -> Result<PathBuf, String> {
    let shown = Path::new(word).display();
    let found = match word.to_str() {
        Some(name) if !name.contains('/') => locate(name).ok_or_else(|| {
            let here = Path::new(name).is_file();
            let hint = if here {
                format!("; the one in this directory is ./{name}")
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
    // `..` is no part of a path in a guest; but a program may look at the name
    // that it was called by, so links stay.
    let whole = std::path::absolute(&found).map_err(error)?;
    let resolved = found.canonicalize().map_err(error)?;
    let plain = whole.components().all(|part| part != Component::ParentDir);
    Ok(if plain { whole } else { resolved })
}

/// Refuses a program that the guest's kernel could not start: one that is not executable, or a script
/// whose interpreter is not `carried`.
pub fn check(program: &Path, carried: &[PathBuf]) -> Result<(), String> {
    let shown = program.display();
    let error = |error: std::io::Error| format!("{shown}: {error}");
    if fs::metadata(program).map_err(error)?.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown}: is not executable; chmod +x makes it so"));
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
            "{shown}: is a script for {there}, which is not in the guest; --carry {there} takes it there"
        ));
    }
    Ok(())
}

/// What a script names in its first line.
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
