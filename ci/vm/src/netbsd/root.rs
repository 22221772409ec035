//! Makes the guest's root file system, without root privileges.

use crate::carry::{Access, Carried, Entry};
use crate::error::{Error, OrUnavailable as _, Phase, Result};
use crate::host::MAKEFS;
use crate::run::{command, locate, read};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

/// Free space in the file system, in MiB, and the number of free inodes.
const FREE: &[&str] = &["-b", "64m", "-f", "4096"];

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

/// Makes the file system in `path` with these files. `scratch` holds the temporary files.
pub fn make(path: &Path, scratch: &Path, files: &Carried) -> Result<()> {
    let staging = tempfile::tempdir_in(scratch).or_unavailable(Phase::Image, scratch.display())?;
    let (tree, spec) = (staging.path().join("tree"), staging.path().join("spec"));
    let stage = || {
        let mut stage = Stage::new(&tree)?;
        files.entries().try_for_each(|(path, entry)| stage.add(path, entry))?;
        stage.devices();
        fs::write(&spec, stage.text)
    };
    stage().or_unavailable(Phase::Image, staging.path().display())?;
    let mut makefs = command(locate(MAKEFS).unwrap_or(MAKEFS.into()));
    makefs.args(["-t", "ffs", "-B", "little", "-o", "version=1"]).args(FREE);
    makefs.arg("-F").arg(&spec).arg(path).arg(&tree);
    read(&mut makefs).map(drop).map_err(|why| Error::unavailable(Phase::Image, why))
}

/// A tree on the host, and a description of its files in the format of mtree(8).
#[derive(Debug)]
struct Stage {
    tree: PathBuf,
    text: String,
}

impl Stage {
    fn new(tree: &Path) -> io::Result<Self> {
        let text = "/set uid=0 gid=0\n. type=dir mode=0755\n".into();
        fs::create_dir(tree)?;
        Ok(Self { tree: tree.into(), text })
    }

    /// Describes a file. Returns its path on the host.
    fn put(&mut self, path: &Path, rest: &str) -> PathBuf {
        let path = path.strip_prefix("/").unwrap_or(path);
        self.text += &format!("./{} {rest}\n", encode(path));
        self.tree.join(path)
    }

    fn add(&mut self, path: &Path, entry: &Entry) -> io::Result<()> {
        match entry {
            Entry::Directory(access) => fs::create_dir(self.put(path, &rest("dir", *access))),
            Entry::File(access, content) => {
                fs::write(self.put(path, &rest("file", *access)), content)
            }
            Entry::Link(to) => symlink(to, self.put(path, "type=link mode=0777")),
            Entry::Special(..) => {
                let why = format!("{}: NetBSD guests have no such special files", path.display());
                Err(io::Error::other(why))
            }
        }
    }

    /// Devices need no file on the host.
    fn devices(&mut self) {
        let mut device = |name: &str, mode: u32, major: u32, minor: u32| {
            let rest = format!("type=char mode={mode:04o} device=netbsd,{major},{minor}");
            self.put(Path::new(&format!("/dev/{name}")), &rest);
        };
        for &(name, mode, major, minor) in DEVICES {
            device(name, mode, major, minor);
        }
        for unit in 0..SERIAL_LINES {
            device(&format!("dty0{unit}"), 0o600, SERIAL, DIAL_OUT | unit);
        }
    }
}

fn rest(kind: &str, Access { mode, user, group }: Access) -> String {
    format!("type={kind} mode={mode:04o} uid={user} gid={group}")
}

/// Encodes a path as vis(3) does: characters with a meaning for mtree become octal.
fn encode(path: &Path) -> String {
    let mut text = String::new();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/._-+,=@".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text += &format!("\\{byte:03o}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_spec_names_directories_devices_and_files() {
        let scratch = tempfile::tempdir().expect("a directory");
        let tree = scratch.path().join("tree");
        let mut stage = Stage::new(&tree).expect("made");
        let root = Access::root(0o755);
        let mut add = |path: &str, entry| stage.add(Path::new(path), &entry).expect("made");
        add("/dev", Entry::Directory(root));
        add("/bin", Entry::Directory(Access { mode: 0o755, user: 7, group: 8 }));
        add("/bin/a b#c", Entry::File(root, b"x"[..].into()));
        add("/bin/l", Entry::Link("a b#c".into()));
        stage.devices();
        let text = stage.text;
        for expected in [
            "/set uid=0 gid=0\n. type=dir mode=0755\n",
            "\n./dev type=dir mode=0755 uid=0 gid=0\n",
            "\n./bin type=dir mode=0755 uid=7 gid=8\n",
            "\n./dev/console type=char mode=0600 device=netbsd,0,0\n",
            "\n./dev/dty01 type=char mode=0600 device=netbsd,8,524289\n",
            "\n./dev/kcov type=char mode=0666 device=netbsd,346,0\n",
            "\n./bin/a\\040b\\043c type=file mode=0755 uid=0 gid=0\n",
            "\n./bin/l type=link mode=0777\n",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in: {text}");
        }
        assert_eq!(fs::read(tree.join("bin/l")).expect("a link"), b"x");
    }
}
