//! What this program does when a check executes it.

use crate::raw::call;
use std::io::{Read as _, Write as _};

/// Says on standard output that it runs, waits for a byte on standard input, and makes the
/// traced call.
///
/// Nothing else happens between the two, so whoever sees the word knows that the new program has
/// begun.
pub fn announce_then_call() -> std::io::Result<()> {
    let mut out = std::io::stdout();
    out.write_all(b"!")?;
    out.flush()?;
    std::io::stdin().read_exact(&mut [0])?;
    call();
    Ok(())
}
