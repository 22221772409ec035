//! Links programs for NetBSD with the host's `ld`.
//!
//! The order of the start files matters, but rustc puts additional arguments
//! last. So its linker is a script, in a directory of links to the sysroot's
//! archives. The linker finds nothing else, and nothing of the host.

use super::sysroot::{self, UNWINDER};
use crate::cache::Cache;
use crate::error::{OrUnavailable as _, Phase, Result, Unavailable};
use crate::hash;
use crate::run::command;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The target triple of the programs.
pub const TRIPLE: &str = "x86_64-unknown-netbsd";

/// The beginning of `ld`'s messages.
const LD: &str = "ld: ";

/// rustc treats a linker with this suffix as a plain `ld`.
const LINKER: &str = "netbsd-ld";

/// Archives on the linker's command line that a release may lack.
const OPTIONAL: &[&str] = &["libelf.a", "libexecinfo.a", "libgcc.a", "librt.a", "libutil.a"];

/// An empty archive.
const EMPTY: &[u8] = b"!<arch>\n";

/// Returns the linker for the given sysroot. Makes it in the cache if necessary.
pub fn linker(given: &Path, cache: &Cache) -> Result<String> {
    let sysroot = sysroot::find(given, cache)?;
    let files = files(&sysroot).or_unavailable(Phase::Image, sysroot.display())?;
    let script = script(&files);
    let text = format!("{}\n{script}{files:?}", sysroot.display());
    let name = format!("link-{}", &hash::bytes(text.as_bytes())[..12]);
    let directory = cache.netbsd().join(&name);
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

/// Links an empty program, once for these libraries.
pub fn try_empty(linker: &str) -> Result<()> {
    let [source, program] =
        ["empty.rs", "empty"].map(|name| Path::new(linker).with_file_name(name));
    if program.is_file() {
        return Ok(());
    }
    fs::write(&source, "fn main() {}\n").or_unavailable(Phase::Image, source.display())?;
    let mut rustc = command("rustc");
    rustc.args(["--target", TRIPLE]).args(FLAGS).arg(format!("-Clinker={linker}"));
    let output = rustc.arg("-o").arg(program).arg(source).output();
    let output = output.or_unavailable(Phase::Image, "rustc")?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let messages = said.lines().filter_map(|line| line.split_once(LD));
    let detail = messages.map(|(_, message)| message.to_string());
    let detail = detail.filter(|message| !message.contains("in function")).take(3);
    let message = "--sysroot: an empty program cannot be linked against its libraries";
    Err(Unavailable::new(Phase::Image, message).detail(detail.collect()).into())
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
}
