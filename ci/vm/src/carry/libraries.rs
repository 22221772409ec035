//! Finds the libraries of a dynamic program by asking its loader.

use crate::run::command;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

/// The C library of a glibc program, whose loader reads a cache. It opens the other library itself
/// when a thread is cancelled.
const GLIBC: (&str, &str, &str) = ("libc.so.6", "/etc/ld.so.cache", "libgcc_s.so.1");

/// The directory of libraries for newer processors. The guest's processor may need the usual ones.
const NEWER: &str = "glibc-hwcaps";

/// What a loader finds.
#[derive(Debug)]
pub struct Found {
    /// The loader, the libraries, and the files that they read.
    pub files: Vec<PathBuf>,
    /// Why the program cannot start.
    pub missing: Option<String>,
}

/// Finds the loader and the libraries of a program or library on this host.
///
/// Like ldd(1), it runs the loader without starting the program. Of the environment, the loader
/// sees only the guest's `variables`.
pub fn of(
    program: &Path,
    loader: &Path,
    variables: &[(OsString, OsString)],
) -> Result<Found, String> {
    let (shown, by) = (program.display(), loader.display());
    if !loader.is_file() {
        return Err(format!(
            "{shown} needs the loader {by}, which is not on this host; install the C library \
             that it belongs to, or build the program with \
             RUSTFLAGS='-C target-feature=+crt-static'"
        ));
    }
    let mut command = command(loader);
    for (name, _) in std::env::vars_os().filter(|(name, _)| name.as_bytes().starts_with(b"LD_")) {
        command.env_remove(name);
    }
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let output = command.arg("--list").arg(program).output();
    let output = output.map_err(|error| format!("{by}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    let missing = missing(&text, &errors).map(|name| {
        format!(
            "{shown} needs {name}, which {by} cannot find on this host; install it, or put \
             its directory into LD_LIBRARY_PATH"
        )
    });
    if missing.is_none() && !output.status.success() {
        let why = errors.lines().next().unwrap_or("it gave no reason");
        return Err(format!("{by} cannot list the libraries of {shown}: {why}"));
    }
    Ok(Found { files: with_companions(listed(&text), loader), missing })
}

/// Adds the files that libraries open by themselves.
fn with_companions(mut found: Vec<PathBuf>, loader: &Path) -> Vec<PathBuf> {
    let (libc, cache, unwinder) = GLIBC;
    let mut more = vec![loader.to_path_buf()];
    for path in &found {
        if path.file_name().is_some_and(|name| name == libc) {
            more.extend([cache.into(), path.with_file_name(unwinder)]);
        }
        let newer = path.ancestors().find(|at| at.file_name().is_some_and(|name| name == NEWER));
        if let (Some(newer), Some(name)) = (newer, path.file_name()) {
            more.push(newer.with_file_name(name));
        }
    }
    // musl's loader has a list of directories.
    if let Some(name) = loader.file_name().and_then(|name| name.to_str()) {
        if let Some(arch) = name.strip_prefix("ld-musl-").and_then(|it| it.strip_suffix(".so.1")) {
            more.push(format!("/etc/ld-musl-{arch}.path").into());
        }
    }
    found.extend(more.into_iter().filter(|path| path.is_file()));
    found
}

/// The files that a loader lists.
fn listed(text: &str) -> Vec<PathBuf> {
    let file = |line: &str| {
        let line = line.trim();
        let path = line.split_once(" => ").map_or(line, |(_, path)| path);
        // Cut off the address. The vDSO has no path.
        let path = path.rsplit_once(" (").map_or(path, |(path, _)| path);
        path.contains('/').then(|| PathBuf::from(path))
    };
    text.lines().filter_map(file).collect()
}

/// Returns the first library that the loader cannot find, as glibc or musl reports it.
fn missing<'a>(text: &'a str, errors: &'a str) -> Option<&'a str> {
    let listed = text.lines().find_map(|line| line.trim().strip_suffix(" => not found"));
    let said = |line: &'a str| {
        let (_, rest) = line
            .split_once("error while loading shared libraries: ")
            .or_else(|| line.split_once("Error loading shared library "))?;
        let (name, why) = rest.split_once(": ")?;
        why.to_lowercase().contains("no such file").then_some(name)
    };
    listed.or_else(|| errors.lines().find_map(said))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_taken_from_the_list() {
        let text = "\tlinux-vdso.so.1 (0x00007efe36dbc000)\n\
                    \tlibc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007efe36b74000)\n\
                    \t/opt/a b/lib (1).so (0x00007efe36b74000)\n\
                    \t/lib64/ld-linux-x86-64.so.2 (0x00007efe36dbe000)\n";
        let expected = [
            "/lib/x86_64-linux-gnu/libc.so.6",
            "/opt/a b/lib (1).so",
            "/lib64/ld-linux-x86-64.so.2",
        ];
        assert_eq!(listed(text), expected.map(PathBuf::from));
    }

    #[test]
    fn missing_libraries_are_named() {
        let glibc = "./m: error while loading shared libraries: libzz.so: cannot open shared \
                     object file: No such file or directory\n";
        let musl = "Error loading shared library libzz.so: No such file or directory (needed by m)";
        for errors in [glibc, musl] {
            assert_eq!(missing("", errors), Some("libzz.so"));
        }
        assert_eq!(missing("\tlibzz.so => not found\n", ""), Some("libzz.so"));
        let other = "m: error while loading shared libraries: libzz.so: invalid ELF header";
        assert_eq!(missing("", other), None);
    }
}
