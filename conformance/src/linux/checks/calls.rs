//! System calls that take known, different paths or compare their arguments.

use crate::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};
use std::os::fd::AsRawFd as _;

/// A number that the kernel only compares when a check passes it.
pub(crate) const MAGIC: u32 = 0x5bd1_e995;

/// Cases of the switch that [`switch_over_argument`] reaches.
pub(crate) const CASES: &[u64] =
    &[libc::PR_SET_PDEATHSIG as u64, libc::PR_SET_NAME as u64, libc::PR_SET_NO_NEW_PRIVS as u64];

/// A call other than the usual one.
pub(crate) fn seek_nowhere() {
    // SAFETY: the call takes no pointer.
    let returned = unsafe { libc::syscall(libc::SYS_lseek, -1, 0, libc::SEEK_CUR) };
    assert_eq!(Errno::check(returned), Err(Errno(libc::EBADF)));
}

/// A call that compares its argument with the cases of a switch and matches none.
pub(crate) fn switch_over_argument() {
    // SAFETY: there is no such option, so the kernel uses no argument.
    let returned = unsafe { libc::prctl(MAGIC as i32, 0, 0, 0, 0) };
    assert_eq!(returned, -1, "the kernel does not know that option");
}

/// The constant that [`compare_argument`] reaches: the number of families.
pub(crate) const CONSTANT: std::ops::Range<u64> = libc::AF_UNIX as u64 + 1..100;

/// A call that compares its argument with a constant.
pub(crate) fn compare_argument(argument: u32) {
    // SAFETY: the call takes no pointer.
    let returned = unsafe { libc::socket(argument as i32, 0, 0) };
    assert_eq!(returned, -1, "the kernel does not know that family");
}

/// A 64-bit number. It and its low 32, 16 and 8 bits all have the highest bit set.
pub(crate) const WIDE: u64 = 0x9e37_79b9_dbd1_e995;

/// Calls that compare 8-bit, 16-bit and 32-bit numbers with the highest bit set.
pub(crate) const NEGATIVE: &[fn()] = &[compare_byte, compare_half, compare_word, compare_words];

/// Compares the first letter of a path with constants.
pub(crate) fn compare_byte() {
    let path = [WIDE as u8, 0];
    // SAFETY: the path ends with a zero byte.
    let returned = unsafe { libc::open(path.as_ptr().cast(), libc::O_RDONLY) };
    assert_eq!(returned, -1, "there is no such file");
}

/// Compares the 8-bit types of two locks: a new write lock and an existing read lock.
pub(crate) fn compare_bytes() {
    let file = memfd_create("locked", MFdFlags::empty()).expect("a file");
    for kind in [libc::F_RDLCK, libc::F_WRLCK] {
        // Relative to the start: `SEEK_SET` is 0.
        let lock = libc::flock { l_type: kind as _, l_whence: 0, l_start: 0, l_len: 1, l_pid: 0 };
        fcntl(&file, FcntlArg::F_SETLK(&lock)).expect("a lock of this process");
    }
}

/// Compares the 16-bit family of an address with that of the socket.
pub(crate) fn compare_half() {
    let (family, kind) = (AddressFamily::Unix, SockType::Datagram);
    let socket = socket(family, kind, SockFlag::empty(), None).expect("a socket");
    let mut bytes = [1_u8; 16];
    bytes[..2].copy_from_slice(&(WIDE as u16).to_ne_bytes());
    // SAFETY: the address has the size that is passed.
    let returned = unsafe { libc::bind(socket.as_raw_fd(), bytes.as_ptr().cast(), 16) };
    assert_eq!(returned, -1, "an address of another family");
}

/// Compares 32 bits with a constant.
pub(crate) fn compare_word() {
    compare_argument(WIDE as u32);
}

/// Compares two 32-bit arguments with each other.
pub(crate) fn compare_words() {
    // SAFETY: the call takes no pointer.
    let returned = unsafe { libc::syscall(libc::SYS_dup3, WIDE as u32, WIDE as u32 - 1, 0) };
    assert_eq!(returned, -1, "these are no descriptors");
}

/// Compares 64 bits with a constant.
pub(crate) fn compare_long() {
    let time = [0, WIDE];
    // SAFETY: the kernel reads two words, which `time` has.
    let returned = unsafe { libc::syscall(libc::SYS_nanosleep, time.as_ptr(), 0) };
    assert_eq!(returned, -1, "these are too many nanoseconds");
}

/// Compares two 64-bit numbers with each other.
pub(crate) fn compare_longs() {
    let limits = [WIDE, WIDE - 1];
    // SAFETY: the kernel reads two words, which `limits` has.
    let returned =
        unsafe { libc::syscall(libc::SYS_prlimit64, 0, libc::RLIMIT_NICE, limits.as_ptr(), 0) };
    assert_eq!(returned, -1, "the lower limit is above the upper one");
}

/// Compares 64 bits with the cases of a switch and matches none.
pub(crate) fn switch_over_long() {
    // SAFETY: the kernel rejects the policy, and uses no argument as an address.
    let returned = unsafe { libc::prctl(libc::PR_MCE_KILL, WIDE, 0, 0, 0) };
    assert_eq!(returned, -1, "there is no such policy");
}
