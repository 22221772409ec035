//! Finds the user's program and checks that it can start, before anything is built or booted.

use crate::arch::Arch;
use crate::elf;
use crate::run::locate;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// A program that a guest can start.
#[derive(Debug)]
pub struct Found {
    /// An ELF program of this host.
    pub program: PathBuf,
    /// Its first argument, if that is not its path: the name by which it was called.
    pub word: Option<OsString>,
    pub arguments: Vec<OsString>,
    /// The script that the program is to interpret.
    pub script: Option<PathBuf>,
}

impl Found {
    /// A program that is no script, by its path.
    pub fn plain(mut words: Vec<OsString>) -> Self {
        let arguments = words.split_off(1);
        Self { program: words.remove(0).into(), word: None, arguments, script: None }
    }
}

/// Finds the program as a shell would, or a script's interpreter as the kernel would.
pub fn find(mut words: Vec<OsString>, arch: &Arch) -> Result<Found, String> {
    let mut arguments = words.split_off(1);
    let path = locate_word(&words[0])?;
    let bytes = load(&path)?;
    let Some((word, option)) = interpreter(&bytes)? else {
        fit(&path, &bytes, arch)?;
        return Ok(Found { program: path, word: Some(words.remove(0)), arguments, script: None });
    };
    let on_host = locate_word(&word).and_then(|program| Ok((load(&program)?, program)));
    let (bytes, program) =
        on_host.map_err(|why| format!("{}: its interpreter cannot run: {why}", path.display()))?;
    fit(&program, &bytes, arch)?;
    arguments.insert(0, path.clone().into());
    option.into_iter().for_each(|option| arguments.insert(0, option));
    Ok(Found { program, word: Some(word), arguments, script: Some(path) })
}

/// Finds a file by a path, or in `PATH`.
fn locate_word(word: &OsStr) -> Result<PathBuf, String> {
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
    if fs::metadata(&found).map_err(|error| format!("{shown}: {error}"))?.is_dir() {
        return Err(format!("{shown}: is a directory, not a program"));
    }
    Ok(found)
}

/// Reads a program. Refuses a file that is not executable.
fn load(program: &Path) -> Result<Vec<u8>, String> {
    let shown = program.display();
    let error = |error: std::io::Error| format!("{shown}: {error}");
    if fs::metadata(program).map_err(error)?.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown}: is not executable; run chmod +x"));
    }
    fs::read(program).map_err(error)
}

/// Refuses a file that is not a program for this architecture.
fn fit(program: &Path, bytes: &[u8], arch: &Arch) -> Result<(), String> {
    elf::linked(bytes, arch).map(drop).map_err(|why| format!("{}: {why}", program.display()))
}

/// Parses a script's interpreter and its option from the first line. env(1) is left out, because the
/// guest has another `PATH`.
fn interpreter(start: &[u8]) -> Result<Option<(OsString, Option<OsString>)>, String> {
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = OsStr::from_bytes(line).to_string_lossy();
    let mut words = line.split_ascii_whitespace().peekable();
    if words.peek().is_some_and(|name| name.ends_with("/env")) {
        words.next();
        words.next_if_eq(&"-S");
    }
    let name = words.next().ok_or("a script names no interpreter after #!")?;
    let rest = words.collect::<Vec<_>>().join(" ");
    Ok(Some((name.into(), (!rest.is_empty()).then(|| rest.into()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scripts_name_their_interpreters() {
        let named = |start: &[u8]| {
            interpreter(start).unwrap().map(|(name, option)| {
                (name.into_string().unwrap(), option.map(|option| option.into_string().unwrap()))
            })
        };
        let is = |name: &str, option: Option<&str>| Some((name.into(), option.map(Into::into)));
        assert_eq!(named(b"#!/bin/sh\necho"), is("/bin/sh", None));
        assert_eq!(named(b"#!/bin/sh -e -u \n"), is("/bin/sh", Some("-e -u")));
        assert_eq!(named(b"#! /usr/bin/env python3"), is("python3", None));
        assert_eq!(named(b"#!/usr/bin/env -S awk -f\n"), is("awk", Some("-f")));
        assert_eq!(named(b"\x7fELF"), None);
        assert_eq!(named(b"echo\n#!/bin/sh"), None);
        assert!(interpreter(b"#!\n").is_err());
    }
}
