//! System calls that are known to go different ways, and to compare their arguments.

use crate::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::os::fd::AsRawFd as _;

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

/// A number of 64 bits of which the lower 32, 16 and 8 have their highest bit set, as it has.
pub(crate) const WIDE: u64 = 0x9e37_79b9_dbd1_e995;

/// Calls that compare numbers of 8, 16 and 32 bits with their highest bit set.
pub(crate) const NEGATIVE: &[fn()] = &[compare_byte, compare_half, compare_word, compare_words];

/// Compares the first letter of a path with constants.
pub(crate) fn compare_byte() {
    let path = [WIDE as u8, 0];
    // SAFETY: the path ends with a zero byte.
    let returned = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY) };
    assert_eq!(returned, -1, "there is no such file");
}

/// Compares the types of two locks, which have 8 bits: one to be set to write, and one that is
/// there to read.
pub(crate) fn compare_bytes() {
    let file = memfd_create("locked", MFdFlags::empty()).expect("a file");
    for kind in [libc::F_RDLCK, libc::F_WRLCK] {
        let lock = libc::flock {
            l_type: kind as libc::c_short,
            l_whence: libc::SEEK_SET as libc::c_short,
            l_start: 0,
            l_len: 1,
            l_pid: 0,
        };
        fcntl(&file, FcntlArg::F_SETLK(&lock)).expect("a lock of this process");
    }
}

/// Compares the 16 bits of an address' family with the one that the socket has.
pub(crate) fn compare_half() {
    let (family, kind) = (AddressFamily::Unix, SockType::Datagram);
    let socket = socket(family, kind, SockFlag::empty(), None).expect("a socket");
    let mut bytes = [1_u8; 16];
    bytes[..2].copy_from_slice(&(WIDE as u16).to_ne_bytes());
    // SAFETY: the address is as long as it is said to be.
    let returned = unsafe { libc::bind(socket.as_raw_fd(), bytes.as_ptr().cast(), 16) };
    assert_eq!(returned, -1, "an address of another family");
}

/// Compares 32 bits with a constant.
pub(crate) fn compare_word() {
    // SAFETY: no memory is passed.
    let returned = unsafe { libc::socket(WIDE as i32, 0, 0) };
    assert_eq!(returned, -1, "the kernel does not know that family");
}

/// Compares two arguments of 32 bits with one another.
pub(crate) fn compare_words() {
    // SAFETY: no memory is passed.
    let returned = unsafe { libc::syscall(libc::SYS_dup3, WIDE as u32, WIDE as u32 - 1, 0) };
    assert_eq!(returned, -1, "these are no descriptors");
}

/// Compares 64 bits with a constant.
pub(crate) fn compare_long() {
    let time = [0, WIDE];
    // SAFETY: the time is two words, and too bad to be slept for.
    let returned = unsafe { libc::syscall(libc::SYS_nanosleep, time.as_ptr(), 0) };
    assert_eq!(returned, -1, "these are too many nanoseconds");
}

/// Compares two numbers of 64 bits with one another.
pub(crate) fn compare_longs() {
    let limits = [WIDE, WIDE - 1];
    // SAFETY: the limits are two words.
    let returned =
        unsafe { libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NICE, limits.as_ptr(), 0) };
    assert_eq!(returned, -1, "the lower limit is above the upper one");
}

/// Compares 64 bits with the numbers of a switch, none of which they are.
pub(crate) fn switch_over_long() {
    // SAFETY: the kernel refuses the policy, and has no use for an address.
    let returned = unsafe { libc::prctl(libc::PR_MCE_KILL, WIDE, 0, 0, 0) };
    assert_eq!(returned, -1, "there is no such policy");
}
