//! What an image is laid out in: an archive, or a tree on the host.

use std::path::Path;

/// A file's permissions, with its type where that is not said otherwise, and its owner.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Access {
    pub mode: u32,
    pub user: u32,
    pub group: u32,
}

impl Access {
    /// A file of root.
    pub const fn root(mode: u32) -> Self {
        Self { mode, user: 0, group: 0 }
    }
}

/// The format of an image.
pub trait Layout {
    /// Adds a directory. Parents come before their children.
    fn directory(&mut self, path: &Path, access: Access);
    /// Adds a regular file.
    fn file(&mut self, path: &Path, access: Access, content: &[u8]);
    /// Adds a symbolic link.
    fn link(&mut self, path: &Path, to: &Path);
    /// Adds a pipe, a socket or a device with its numbers. The mode has its type.
    fn special(&mut self, path: &Path, access: Access, device: (u32, u32));
}
