//! Links programs for NetBSD with the host's `ld`.
//!
//! The order of the start files matters, but rustc puts additional arguments
//! last. So its linker is a script, in a directory of links to the sysroot's
//! archives. The linker finds nothing else, and nothing of the host.

use crate::cache::Cache;
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::hash;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The target triple of the programs.
pub const TRIPLE: &str = "x86_64-unknown-netbsd";

/// rustc treats a linker with this suffix as a plain `ld`.
const LINKER: &str = "netbsd-ld";

/// Archives on the linker's command line that a release may lack.
const OPTIONAL: &[&str] = &["libelf.a", "libexecinfo.a", "libgcc.a", "librt.a", "libutil.a"];

/// An empty archive.
const EMPTY: &[u8] = b"!<arch>\n";

/// The files that a static program needs and that exist in one form only.
const REQUIRED: &[&str] = &["crt0.o", "crti.o", "crtn.o", "libc.a", "libm.a", "libpthread.a"];

/// The unwinder: separate in the comp set, or part of a complete libgcc_s.
const UNWINDER: [&str; 2] = ["libgcc_eh.a", "libgcc_s.a"];

/// Finds the directory with the libraries: `given` itself, or its `usr/lib`.
fn find(given: &Path) -> Result<PathBuf> {
    let below = given.join("usr/lib");
    let directory = if below.is_dir() { &below } else { given };
    let lacks = |file: &&str| !directory.join(file).is_file();
    let mut missing: Vec<_> = REQUIRED.iter().copied().filter(lacks).collect();
    if UNWINDER.iter().all(lacks) {
        missing.push(UNWINDER[0]);
    }
    let why = match fs::canonicalize(directory) {
        Ok(found) if missing.is_empty() => return Ok(found),
        Ok(_) => format!(
            "{} lacks {}; give usr/lib of NetBSD's comp set, or a directory that contains it",
            directory.display(),
            missing.join(", ")
        ),
        Err(error) => error.to_string(),
    };
    Err(Error::unavailable(Phase::Image, format!("--sysroot {}: {why}", given.display())))
}

/// Returns the linker for the given sysroot. Makes it in the cache if necessary.
pub fn linker(given: &Path, cache: &Cache) -> Result<String> {
    let sysroot = find(given)?;
    let files = files(&sysroot).or_unavailable(Phase::Image, sysroot.display())?;
    let script = script(&files);
    let text = format!("{}\n{script}{files:?}", sysroot.display());
    let name = format!("link-{}", &hash::bytes(text.as_bytes())[..12]);
    let directory = cache.at("netbsd").join(&name);
    let path = directory.join(LINKER);
    let _lock = cache.lock(Phase::Image, &format!("netbsd-{name}"))?;
    if !path.is_file() {
        // The script is written last, so its presence proves that nothing is missing.
        let _ = fs::remove_dir_all(&directory);
        make(&directory, &sysroot, &files, &script)
            .or_unavailable(Phase::Image, directory.display())?;
    }
    Ok(path.display().to_string())
}

/// The flags for rustc, without the linker's path.
pub const FLAGS: [&str; 3] =
    ["-Clinker-flavor=ld", "-Crelocation-model=static", "-Ctarget-feature=+crt-static"];

/// The archives and objects, each with an identity that changes with an edit, so that programs are
/// linked again.
fn files(sysroot: &Path) -> io::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(sysroot)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".a") || name.ends_with(".o") {
            let metadata = fs::metadata(entry.path())?;
            let time = metadata.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            files.insert(name, format!("{} {time:?}", metadata.len()));
        }
    }
    Ok(files)
}

/// Surrounds rustc's arguments with the start files, in the order of NetBSD's own compiler. All of
/// libpthread comes before the C library, which has stubs of the same names.
fn script(files: &BTreeMap<String, String>) -> String {
    let has = |name: &str| files.contains_key(name);
    let mut text = String::from(
        "#!/bin/sh\n# Links a static program for NetBSD/amd64. Written by kcov-vm.\n\
         lib=${0%/*}\nexec ld -nostdlib -static --build-id=none \"-L$lib\"",
    );
    let mut word = |word: &str| text.extend([" ", word]);
    let object = |name: &str| format!("\"$lib/{name}\"");
    let begin = ["crtbeginT.o", "crtbegin.o"].into_iter().find(|name| has(name));
    for name in ["crt0.o", "crti.o"].into_iter().chain(begin) {
        word(&object(name));
    }
    word("--whole-archive -lpthread --no-whole-archive");
    word("\"$@\"");
    word("-Bstatic --no-as-needed --start-group -lm -lrt -lc -lgcc_s -lgcc --end-group");
    for name in ["crtend.o", "crtn.o"].into_iter().filter(|name| has(name)) {
        word(&object(name));
    }
    text.push('\n');
    text
}

fn make(
    directory: &Path,
    sysroot: &Path,
    files: &BTreeMap<String, String>,
    script: &str,
) -> io::Result<()> {
    fs::create_dir(directory)?;
    let has = |name: &str| files.contains_key(name);
    for name in files.keys() {
        symlink(sysroot.join(name), directory.join(name))?;
    }
    for name in OPTIONAL.iter().filter(|name| !has(name)) {
        fs::write(directory.join(name), EMPTY)?;
    }
    // The name of the unwinder in Rust's standard library.
    let [unwinder, expected] = UNWINDER;
    if !has(expected) {
        symlink(sysroot.join(unwinder), directory.join(expected))?;
    }
    let path = directory.join(LINKER);
    fs::write(&path, script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(names: &[&str]) -> BTreeMap<String, String> {
        names.iter().map(|name| ((*name).into(), String::new())).collect()
    }

    #[test]
    fn start_files_surround_the_program() {
        let text = script(&of(&["crt0.o", "crtbegin.o", "crtend.o", "crti.o", "crtn.o"]));
        let places: Vec<_> =
            ["crt0.o", "crti.o", "crtbegin.o", "pthread", "$@", "-lc", "crtend.o", "crtn.o"]
                .map(|part| text.find(part).expect(part))
                .into();
        assert!(places.is_sorted(), "{text}");
        let text = script(&of(&["crt0.o", "crtbegin.o", "crtbeginT.o", "crti.o", "crtn.o"]));
        assert!(text.contains("crtbeginT.o") && !text.contains("crtbegin.o"), "{text}");
        assert!(!text.contains("crtend"), "{text}");
    }

    #[test]
    fn missing_archives_are_replaced() {
        let sysroot = tempfile::tempdir().expect("a directory");
        for name in ["libc.a", "libgcc_eh.a", "librt.a"] {
            fs::write(sysroot.path().join(name), name).expect("a file");
        }
        let files = files(sysroot.path()).expect("files");
        let directory = sysroot.path().join("link");
        make(&directory, sysroot.path(), &files, "#!/bin/sh\n").expect("made");
        let read = |name| fs::read(directory.join(name)).expect(name);
        assert_eq!(read("libexecinfo.a"), EMPTY);
        assert_eq!(read("librt.a"), b"librt.a");
        assert_eq!(read("libgcc_s.a"), b"libgcc_eh.a");
    }

    #[test]
    fn libraries_are_found_and_what_is_missing_is_named() {
        let directory = tempfile::tempdir().expect("a directory");
        let libraries = directory.path().canonicalize().expect("its path").join("usr/lib");
        fs::create_dir_all(&libraries).expect("directories");
        for file in [REQUIRED, &["libgcc_eh.a"]].concat() {
            fs::write(libraries.join(file), "").expect("a file");
        }
        for given in [directory.path(), &libraries] {
            assert_eq!(find(given).expect("whole"), libraries);
        }
        for name in ["crt0.o", "libgcc_eh.a"] {
            fs::remove_file(libraries.join(name)).expect("there");
            let message = find(directory.path()).expect_err("incomplete").to_string();
            assert!(message.contains(name), "{message}");
            fs::write(libraries.join(name), "").expect("a file");
        }
    }
}
