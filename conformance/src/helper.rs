//! Actions of this program when a check executes it.

use crate::raw::{Device, call};
use std::io::{self, Read as _, Write as _};
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// Writes a line to standard output, waits for a byte on standard input, and makes the traced call.
///
/// It does nothing else in between, so the line shows that the new program has started.
pub fn announce_then_call() -> io::Result<()> {
    let mut out = io::stdout();
    out.write_all(b"!")?;
    out.flush()?;
    io::stdin().read_exact(&mut [0])?;
    call();
    Ok(())
}

/// Disables the device of an inherited descriptor.
pub fn disable(inherited: RawFd) -> io::Result<()> {
    // SAFETY: the check that executes this program left the descriptor open for it.
    let device = Device::from(unsafe { OwnedFd::from_raw_fd(inherited) });
    device.disable().map_err(|errno| io::Error::from_raw_os_error(errno.0))
}
