//! Writes initramfs archives in cpio's `newc` format. By hand, because it is a header of thirteen
//! numbers, and paths may have any bytes.

use crate::carry::{Access, Entry};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// An archive being written.
#[derive(Clone, Debug, Default)]
pub struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

const DIRECTORY: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

impl Archive {
    /// Adds a file. Its directory must be there.
    pub fn add(&mut self, path: &Path, entry: &Entry) {
        let none = (0, 0);
        match entry {
            Entry::Directory(access) => self.entry(path, DIRECTORY, *access, none, &[]),
            Entry::File(access, content) => self.entry(path, FILE, *access, none, content),
            Entry::Link(to) => {
                self.entry(path, LINK, Access::root(0o777), none, to.as_os_str().as_bytes());
            }
            // The mode has the type.
            Entry::Special(access, device) => self.entry(path, 0, *access, *device, &[]),
        }
    }

    /// Ends the archive.
    pub fn finish(mut self) -> Vec<u8> {
        self.inode = 0;
        self.entry(Path::new("TRAILER!!!"), 0, Access::root(0), (0, 0), &[]);
        self.bytes
    }

    fn entry(
        &mut self,
        path: &Path,
        kind: u32,
        access: Access,
        device: (u32, u32),
        content: &[u8],
    ) {
        let path = path.as_os_str().as_bytes();
        let path = path.strip_prefix(b"/").unwrap_or(path);
        let size = u32::try_from(content.len()).expect("newc files are smaller than 4 GiB");
        self.inode += 1;
        let fields = [
            self.inode,
            kind | access.mode,
            access.user,
            access.group,
            1, // links
            0, // time
            size,
            0, // device, major
            0, // device, minor
            device.0,
            device.1,
            u32::try_from(path.len() + 1).expect("paths are short"),
            0, // checksum, unused
        ];
        let mut header = String::from("070701");
        for field in fields {
            header += &format!("{field:08x}");
        }
        self.bytes.extend_from_slice(header.as_bytes());
        self.bytes.extend_from_slice(path);
        self.bytes.push(0);
        self.pad();
        self.bytes.extend_from_slice(content);
        self.pad();
    }

    fn pad(&mut self) {
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }
}
