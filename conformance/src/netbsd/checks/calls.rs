//! System calls that take known, different paths or compare their arguments.

use nix::errno::Errno;
use nix::unistd::{Whence, lseek};
use std::os::fd::BorrowedFd;

pub(crate) const MAGIC: u32 = 0x5bd1_e995;

pub(crate) const CASES: &[u64] =
    &[libc::F_DUPFD as u64, libc::F_GETFD as u64, libc::F_GETFL as u64];

/// Calls that compare numbers with the highest bit set. None are known here.
pub(crate) const NEGATIVE: &[fn()] = &[];

pub(crate) fn seek_nowhere() {
    // SAFETY: no file descriptor has this number, and the kernel only rejects it.
    let nowhere = unsafe { BorrowedFd::borrow_raw(i32::MAX) };
    assert_eq!(lseek(nowhere, 0, Whence::SeekCur), Err(Errno::EBADF));
}

pub(crate) fn switch_over_argument() {
    // SAFETY: there is no such command, so the kernel does nothing.
    let returned = unsafe { libc::fcntl(0, MAGIC as i32, 0) };
    assert_eq!(returned, -1, "the kernel does not know that command");
}

/// The constant that [`compare_argument`] reaches: the number of limits.
pub(crate) const CONSTANT: std::ops::Range<u64> = libc::RLIMIT_NOFILE as u64 + 1..100;

pub(crate) fn compare_argument(argument: u32) {
    // SAFETY: the kernel refuses to write to null.
    let returned = unsafe { libc::getrlimit(argument as i32, std::ptr::null_mut()) };
    assert_eq!(returned, -1, "there is nowhere to write to");
}
