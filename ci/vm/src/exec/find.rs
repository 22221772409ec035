//! Finds the user's program and checks that it can start, before anything is built or booted.

use crate::arch::Arch;
use crate::elf;
use crate::run::locate;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The number of scripts that may interpret each other, as in the kernel.
const NESTED: usize = 5;

/// A program that a guest can start.
#[derive(Debug)]
pub struct Found {
    /// An ELF program of this host.
    pub program: PathBuf,
    /// Its first argument, if that is not its path: the name by which it was called.
    pub word: Option<OsString>,
    pub arguments: Vec<OsString>,
    /// The scripts that the program is to interpret.
    pub scripts: Vec<PathBuf>,
}

impl Found {
    /// A program that is no script, by its path.
    pub fn plain(mut words: Vec<OsString>) -> Self {
        let arguments = words.split_off(1);
        Self { program: words.remove(0).into(), word: None, arguments, scripts: Vec::new() }
    }
}

/// Finds the program as a shell would, or a script's interpreter as the kernel would.
pub fn find(mut words: Vec<OsString>, arch: &Arch) -> Result<Found, String> {
    let mut arguments = words.split_off(1);
    let (mut word, mut scripts) = (words.remove(0), Vec::<PathBuf>::new());
    loop {
        let unfit = |why| match scripts.last() {
            Some(script) => {
                let script = script.display();
                format!("{script}: its interpreter cannot run: {why}; its first line names it")
            }
            None => why,
        };
        let (program, bytes) = load(&word).map_err(unfit)?;
        let of_program = |why| format!("{}: {why}", program.display());
        let Some(mut first) = interpreter(&bytes).map_err(of_program)? else {
            elf::linked(&bytes, arch).map_err(of_program)?;
            return Ok(Found { program, word: Some(word), arguments, scripts });
        };
        if scripts.len() == NESTED {
            return Err(of_program("more than five scripts interpret each other".into()));
        }
        word = first.remove(0);
        arguments.splice(0..0, first.into_iter().chain([program.clone().into()]));
        scripts.push(program);
    }
}

/// Finds a program by a path, or in `PATH`, and reads it. Refuses a file that is not executable.
fn load(word: &OsStr) -> Result<(PathBuf, Vec<u8>), String> {
    let shown = Path::new(word).display();
    let is_name = !word.as_bytes().contains(&b'/');
    let found = if is_name { locate(word) } else { Some(word.into()) };
    let found = found.ok_or_else(|| {
        let hint = if Path::new(word).is_file() {
            format!("for the one in this directory, write ./{shown}")
        } else {
            "install it, or add its directory to PATH".into()
        };
        format!("{shown}: there is no such program in PATH; {hint}")
    })?;
    let error = |error: std::io::Error| format!("{shown}: {error}");
    let metadata = fs::metadata(&found).map_err(error)?;
    if metadata.is_dir() {
        return Err(format!("{shown}: is a directory, not a program"));
    }
    if metadata.permissions().mode() & 0o111 == 0 {
        return Err(format!("{shown}: is not executable; run chmod +x"));
    }
    let bytes = fs::read(&found).map_err(error)?;
    Ok((found, bytes))
}

/// Parses the first line of a script: its interpreter and options. env(1) is left out, because the
/// guest has another `PATH`.
fn interpreter(start: &[u8]) -> Result<Option<Vec<OsString>>, String> {
    const BLANKS: [char; 2] = [' ', '\t'];
    let Some(line) = start.strip_prefix(b"#!") else { return Ok(None) };
    let line = line.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| "its first line is not UTF-8")?;
    if line.ends_with('\r') {
        return Err("its first line ends with a carriage return; remove it with dos2unix".into());
    }
    let line = line.trim_matches(BLANKS);
    let (name, rest) = line.split_once(BLANKS).unwrap_or((line, ""));
    let rest = rest.trim_start_matches(BLANKS);
    let mut words = vec![name];
    if name.ends_with("/env") {
        words = match rest.strip_prefix("-S") {
            Some(rest) => rest.split_whitespace().collect(),
            None => vec![rest],
        };
        let name = words.first().copied().unwrap_or_default();
        let is_odd = name.starts_with('-') || name.contains(BLANKS) || name.contains('=');
        if is_odd || rest.contains(['"', '\'', '\\', '$', '#']) {
            return Err(format!(
                "the runner does not know what env(1) makes of `{rest}`; name the script's \
                 interpreter on the command line, before the script"
            ));
        }
    } else if !rest.is_empty() {
        words.push(rest);
    }
    match words.first() {
        None | Some(&"") => Err("its first line names no interpreter after #!".into()),
        Some(_) => Ok(Some(words.into_iter().map(OsString::from).collect())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_guest_could_not_do_is_refused() {
        for (start, why) in [
            ("#!\n", "names no interpreter"),
            ("#!/usr/bin/env\n", "names no interpreter"),
            ("#!/bin/sh\r\n", "carriage return"),
            ("#!/usr/bin/env sh -e\n", "what env(1) makes of `sh -e`"),
            ("#!/usr/bin/env -S A=b sh\n", "what env(1) makes of `-S A=b sh`"),
            ("#!/usr/bin/env -S sh -c 'a b'\n", "what env(1) makes of"),
        ] {
            let said = interpreter(start.as_bytes()).expect_err(start);
            assert!(said.contains(why), "{start}: {said}");
        }
    }
}
