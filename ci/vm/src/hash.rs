//! SHA-256, in hexadecimal.

use sha2::{Digest as _, Sha256};
use std::fs::File;
use std::io;
use std::path::Path;

/// Returns the digest of the bytes.
pub fn bytes(bytes: &[u8]) -> String {
    hex(Sha256::new_with_prefix(bytes))
}

/// Returns the digest of the file's content.
pub fn file(path: &Path) -> io::Result<String> {
    let mut state = Sha256::new();
    io::copy(&mut File::open(path)?, &mut state)?;
    Ok(hex(state))
}

fn hex(state: Sha256) -> String {
    state.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
