//! System calls that are known to go different ways, and to compare their arguments.

use crate::errno::Errno;

/// A number that no kernel compares anything with unless it is told to.
pub(crate) const MAGIC: u32 = 0x5bd1_e995;

/// Cases of the switch that [`switch_over_argument`] reaches.
pub(crate) const CASES: &[u64] =
    &[libc::PR_SET_PDEATHSIG as u64, libc::PR_SET_NAME as u64, libc::PR_SET_NO_NEW_PRIVS as u64];

/// Another call than the usual one.
pub(crate) fn seek_nowhere() {
    // SAFETY: no memory is passed.
    let returned = unsafe { libc::syscall(libc::SYS_lseek, -1, 0, libc::SEEK_CUR) };
    assert_eq!(Errno::check(returned), Err(Errno(libc::EBADF)));
}

/// A call that compares its argument with the numbers of a switch, and knows none of it.
pub(crate) fn switch_over_argument() {
    // SAFETY: no option of that number exists, so no argument is used.
    let returned = unsafe { libc::prctl(MAGIC as i32, 0, 0, 0, 0) };
    assert_eq!(returned, -1, "the kernel does not know that option");
}

/// A call that compares its argument with a constant.
pub(crate) fn compare_argument() {
    // SAFETY: no memory is passed.
    let returned = unsafe { libc::socket(MAGIC as i32, 0, 0) };
    assert_eq!(returned, -1, "the kernel does not know that family");
}
