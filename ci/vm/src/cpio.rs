//! Writes initramfs archives in cpio's `newc` format. By hand, because it is a header of thirteen
//! numbers, and the kernel takes nothing else.

use crate::error::WRITING;
use crate::layout::{Access, Layout};
use std::fmt::Write as _;
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

impl Layout for Archive {
    fn directory(&mut self, path: &Path, access: Access) {
        self.entry(path, DIRECTORY, access, (0, 0), &[]);
    }

    fn file(&mut self, path: &Path, access: Access, content: &[u8]) {
        self.entry(path, FILE, access, (0, 0), content);
    }

    fn link(&mut self, path: &Path, to: &Path) {
        self.entry(path, LINK, Access::root(0o777), (0, 0), to.as_os_str().as_bytes());
    }

    fn special(&mut self, path: &Path, access: Access, device: (u32, u32)) {
        self.entry(path, 0, access, device, &[]);
    }
}

impl Archive {
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
            write!(header, "{field:08x}").expect(WRITING);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Eq, PartialEq)]
    struct Entry {
        path: String,
        mode: u32,
        owner: (u32, u32),
        device: (u32, u32),
        content: Vec<u8>,
    }

    /// Parses an archive as the kernel's
    /// `driver-api/early-userspace/buffer-format` describes.
    fn read(mut bytes: &[u8]) -> Vec<Entry> {
        let whole = bytes.len();
        let mut entries = Vec::new();
        loop {
            assert_eq!(&bytes[..6], b"070701");
            let field = |index: usize| {
                let at = 6 + 8 * index;
                let text = std::str::from_utf8(&bytes[at..at + 8]).expect("ASCII");
                u32::from_str_radix(text, 16).expect("hexadecimal")
            };
            let (mode, size, name) = (field(1), field(6) as usize, field(11) as usize);
            let (owner, device) = ((field(2), field(3)), (field(9), field(10)));
            let path = std::str::from_utf8(&bytes[110..110 + name - 1]).expect("ASCII").to_string();
            assert_eq!(bytes[110 + name - 1], 0);
            let start = (110 + name).next_multiple_of(4);
            let content = bytes[start..start + size].to_vec();
            bytes = &bytes[(start + size).next_multiple_of(4)..];
            if path == "TRAILER!!!" {
                assert!(bytes.is_empty(), "{} of {whole} bytes left", bytes.len());
                return entries;
            }
            entries.push(Entry { path, mode, owner, device, content });
        }
    }

    #[test]
    fn a_reader_finds_what_was_written() {
        let mut archive = Archive::default();
        archive.directory(Path::new("/dev"), Access { mode: 0o755, user: 7, group: 8 });
        archive.special(Path::new("/dev/console"), Access::root(0o020_600), (5, 1));
        archive.link(Path::new("/link"), Path::new("dev/console"));
        for length in 0..5 {
            let path = format!("/{}", "f".repeat(length + 1));
            archive.file(Path::new(&path), Access::root(0o644), &vec![7; length]);
        }
        let entries = read(&archive.finish());
        assert_eq!(entries.len(), 8);
        let dir = Entry {
            path: "dev".into(),
            mode: 0o040_755,
            owner: (7, 8),
            device: (0, 0),
            content: Vec::new(),
        };
        assert_eq!(entries[0], dir);
        assert_eq!((entries[1].mode, entries[1].device), (0o020_600, (5, 1)));
        assert_eq!((entries[2].mode, &entries[2].content[..]), (0o120_777, &b"dev/console"[..]));
        for (length, entry) in entries[3..].iter().enumerate() {
            assert_eq!(entry.path, "f".repeat(length + 1));
            assert_eq!((entry.mode, &entry.content), (0o100_644, &vec![7; length]));
        }
    }
}
