//! Finds the libraries of a dynamic program by asking its loader.

use crate::run::command;
use std::path::{Path, PathBuf};

/// Returns the paths of the program's loader and libraries on this host. The
/// error names a missing file.
///
/// Like ldd(1), it runs the loader without starting the program. The loader also
/// searches the directories that the environment names, such as cargo's.
pub fn of(program: &Path, loader: &str) -> Result<Vec<PathBuf>, String> {
    let shown = program.display();
    if !Path::new(loader).is_file() {
        return Err(format!(
            "{shown} needs the loader {loader}, which is not on this host; install the C library \
             that it belongs to, or build the program with \
             RUSTFLAGS='-C target-feature=+crt-static'"
        ));
    }
    let program = std::path::absolute(program).map_err(|error| format!("{shown}: {error}"))?;
    let output = command(loader).arg("--list").arg(&program).output();
    let output = output.map_err(|error| format!("{loader}: {error}"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    if let Some(name) = missing(&text, &errors) {
        return Err(format!(
            "{shown} needs {name}, which {loader} cannot find on this host; install it, or put \
             its directory into LD_LIBRARY_PATH"
        ));
    }
    if !output.status.success() {
        let why = errors.lines().next().unwrap_or("it gave no reason");
        return Err(format!("{loader} cannot list the libraries of {shown}: {why}"));
    }
    let mut found = listed(&text);
    found.push(loader.into());
    Ok(found)
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

/// Returns the first library that the loader cannot find, as glibc or musl
/// reports it.
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
