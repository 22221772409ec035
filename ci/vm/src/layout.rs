//! What an image is laid out in: an archive, or a tree on the host.

/// The format of an image.
pub trait Layout {
    /// Adds a directory. Parents come before their children.
    fn directory(&mut self, path: &str, mode: u32);
    /// Adds a regular file.
    fn file(&mut self, path: &str, mode: u32, content: &[u8]);
    /// Adds a symbolic link.
    fn link(&mut self, path: &str, to: &str);
}
