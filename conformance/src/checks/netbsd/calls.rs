//! System calls that are known to go different ways, and to compare their arguments.

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::os::fd::BorrowedFd;

/// A number that no kernel compares anything with unless it is told to.
pub(crate) const MAGIC: u32 = 0x5bd1_e995;

/// Cases of the switch that [`switch_over_argument`] reaches.
pub(crate) const CASES: &[u64] =
    &[libc::F_DUPFD as u64, libc::F_GETFD as u64, libc::F_GETFL as u64];

/// Calls that are known to compare numbers with their highest bit set: none here.
pub(crate) const NEGATIVE: &[fn()] = &[];

/// Another call than the usual one.
pub(crate) fn seek_nowhere() {
    // SAFETY: the number is that of no descriptor, and nothing is done with it but to be refused.
    let nowhere = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
    assert_eq!(lseek(nowhere, 0, Whence::SeekCur), Err(Errno::EBADF));
}

/// A call that compares its argument with the numbers of a switch, and knows none of it.
pub(crate) fn switch_over_argument() {
    // SAFETY: no command of that number exists, so nothing is done.
    let returned = unsafe { libc::fcntl(0, MAGIC as i32, 0) };
    assert_eq!(returned, -1, "the kernel does not know that command");
}

/// A call that compares its argument with a constant.
pub(crate) fn compare_argument() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure outlives the call.
    let returned = unsafe { libc::getrlimit(MAGIC as i32, &mut limit) };
    assert_eq!(returned, -1, "the kernel does not know that resource");
}
