//! The time limit, as a signal that interrupts waiting.

use nix::errno::Errno;
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
use nix::unistd::alarm;
use std::sync::atomic::{AtomicBool, Ordering};

static REACHED: AtomicBool = AtomicBool::new(false);

extern "C" fn reach(_: libc::c_int) {
    REACHED.store(true, Ordering::Relaxed);
    // Repeat the signal, in case it came just before a wait began.
    alarm::set(1);
}

/// Sets the limit in seconds.
pub fn set(seconds: u32) -> Result<(), Errno> {
    let action = SigAction::new(SigHandler::Handler(reach), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler stores to an atomic and calls alarm(2), which are both safe in a handler.
    unsafe { sigaction(Signal::SIGALRM, &action) }?;
    alarm::set(seconds);
    Ok(())
}

/// Whether the limit has passed.
pub fn is_reached() -> bool {
    REACHED.load(Ordering::Relaxed)
}
