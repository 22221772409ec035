//! Splits bytes that arrive in pieces into lines.

/// The unfinished line.
#[derive(Clone, Debug, Default)]
pub struct Lines(Vec<u8>);

impl Lines {
    /// Takes bytes, and passes on each whole line without its end.
    pub fn feed(&mut self, bytes: &[u8], mut on: impl FnMut(&[u8])) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            self.0.extend_from_slice(piece);
            if let Some(line) = self.0.strip_suffix(b"\n") {
                on(line);
                self.0.clear();
            }
        }
    }

    /// Passes on the last line, if it has no end.
    pub fn end(&mut self, on: impl FnOnce(&[u8])) {
        if !self.0.is_empty() {
            on(&std::mem::take(&mut self.0));
        }
    }
}
