//! Makes the guest's root file system, without root privileges.

use crate::error::{Error, OrUnavailable as _, Phase, Result, WRITING};
use crate::image::{GuestFile, Image};
use crate::run::{command, locate, read};
use kcov_vm_guest::job;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

/// The program that makes the file system.
pub const MAKEFS: &str = "makefs";

/// Directories and their permissions.
const DIRECTORIES: &[(&str, u32)] = &[
    ("bin", 0o755),
    ("dev", 0o755),
    ("proc", 0o755),
    ("root", 0o755),
    ("sbin", 0o755),
    ("tmp", 0o1777),
];

/// Serial lines. Dial-out devices open without a carrier.
const SERIAL_LINES: u32 = 8;
const SERIAL: u32 = 8;
const DIAL_OUT: u32 = 1 << 19;

/// Devices: name, permissions, major and minor number on amd64.
const DEVICES: &[(&str, u32, u32, u32)] = &[
    ("console", 0o600, 0, 0),
    ("constty", 0o600, 0, 1),
    ("tty", 0o666, 1, 0),
    ("null", 0o666, 2, 2),
    ("zero", 0o666, 2, 12),
    ("random", 0o666, 46, 0),
    ("urandom", 0o666, 46, 1),
    ("kcov", 0o666, 346, 0),
    ("vhci", 0o666, 355, 0),
];

/// Makes the file system in `path`. `scratch` holds the temporary files.
pub fn make(image: &Image<'_>, path: &Path, scratch: &Path) -> Result<()> {
    let own = |path: &str, mode, content: &[u8]| GuestFile {
        path: path.into(),
        mode,
        content: content.to_vec(),
    };
    let mut files = vec![
        own("/sbin/init", 0o755, image.init),
        own(job::PATH_BELOW_TMP, 0o600, image.job.encode().as_bytes()),
    ];
    files.extend_from_slice(image.files);
    let files = &files;
    let staging = tempfile::tempdir_in(scratch).or_unavailable(Phase::Image, scratch.display())?;
    let (tree, spec) = (staging.path().join("tree"), staging.path().join("spec"));
    stage(files, &tree, &spec).or_unavailable(Phase::Image, staging.path().display())?;
    let mut makefs = command(locate(MAKEFS).unwrap_or(MAKEFS.into()));
    makefs.args(["-t", "ffs", "-B", "little", "-o", "version=1", "-s"]);
    makefs.arg(format!("{}m", megabytes(files))).arg("-F").arg(&spec).arg(path).arg(&tree);
    read(&mut makefs).map(drop).map_err(|why| Error::unavailable(Phase::Image, why))
}

fn stage(files: &[GuestFile], tree: &Path, spec: &Path) -> io::Result<()> {
    for (directory, _) in DIRECTORIES {
        fs::create_dir_all(tree.join(directory))?;
    }
    for file in files {
        fs::write(tree.join(file.path.trim_start_matches('/')), &file.content)?;
    }
    fs::write(spec, mtree(files))
}

/// Returns the size for the files and the file system's metadata.
fn megabytes(files: &[GuestFile]) -> usize {
    let bytes: usize = files.iter().map(|file| file.content.len()).sum();
    (bytes / (1 << 20) + 1) * 5 / 4 + 8
}

/// Describes every file, in the format of mtree(8).
fn mtree(files: &[GuestFile]) -> String {
    let mut text = String::from("/set uid=0 gid=0\n. type=dir mode=0755\n");
    let mut line = |path: &str, rest: String| {
        let path = path.trim_start_matches('/');
        writeln!(text, "./{} {rest}", encode(path)).expect(WRITING);
    };
    for (path, mode) in DIRECTORIES {
        line(path, format!("type=dir mode={mode:04o}"));
    }
    let device = |mode: u32, major: u32, minor: u32| {
        format!("type=char mode={mode:04o} device=netbsd,{major},{minor}")
    };
    for &(name, mode, major, minor) in DEVICES {
        line(&format!("dev/{name}"), device(mode, major, minor));
    }
    for unit in 0..SERIAL_LINES {
        line(&format!("dev/dty0{unit}"), device(0o600, SERIAL, DIAL_OUT | unit));
    }
    for file in files {
        line(&file.path, format!("type=file mode={:04o}", file.mode));
    }
    text
}

/// Encodes a path as vis(3) does: characters with a meaning for mtree become
/// octal.
fn encode(path: &str) -> String {
    let mut text = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-+,=@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            write!(text, "\\{byte:03o}").expect(WRITING);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, size: usize) -> GuestFile {
        GuestFile { path: path.into(), mode: 0o755, content: vec![0; size] }
    }

    #[test]
    fn the_spec_names_directories_devices_and_files() {
        let text = mtree(&[file("/sbin/init", 0), file("/bin/a b#c", 0)]);
        for expected in [
            "/set uid=0 gid=0\n. type=dir mode=0755\n",
            "\n./tmp type=dir mode=1777\n",
            "\n./dev/console type=char mode=0600 device=netbsd,0,0\n",
            "\n./dev/dty01 type=char mode=0600 device=netbsd,8,524289\n",
            "\n./dev/kcov type=char mode=0666 device=netbsd,346,0\n",
            "\n./sbin/init type=file mode=0755\n",
            "\n./bin/a\\040b\\043c type=file mode=0755\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in: {text}");
        }
        // Parents come before their children.
        assert!(text.find("./dev ").expect("dev") < text.find("./dev/null").expect("null"));
    }

    #[test]
    fn there_is_room_for_everything() {
        assert_eq!(megabytes(&[]), 9);
        let files = [file("/a", 8 << 20), file("/b", 8 << 20)];
        assert!(megabytes(&files) >= 16 + 8);
    }
}
