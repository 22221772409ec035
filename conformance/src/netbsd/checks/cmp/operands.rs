//! Comparisons of each size that only calls of NetBSD make.

use super::*;
use crate::checks::shared::cmp::operands::{constant_long, shows, shows_only, shows_switch};
use kcov_sys::netbsd::{KCOV_CMP_CONST, kcov_cmp_size};
use std::os::fd::FromRawFd as _;

// The highest bit of each is set, so sign extension would show.
const BYTE: u8 = 0xd6;
const SHORT: u16 = 0x9234;
const INT: u32 = 0x9234_5678;

/// Returns a routing socket of this protocol.
fn routing(protocol: u16) -> File {
    // SAFETY: the call takes no pointer.
    let fd = unsafe { libc::socket(libc::AF_ROUTE, libc::SOCK_RAW, protocol.into()) };
    assert!(fd >= 0, "{}", std::io::Error::last_os_error());
    // SAFETY: the kernel has just created this descriptor, so nothing else owns it.
    unsafe { OwnedFd::from_raw_fd(fd) }.into()
}

/// Sends a message of an unknown type about an address of no family.
fn route(socket: &File) {
    use std::io::Write as _;
    const HEADER: usize = 120;
    const ADDRESS: u8 = 16;
    const LENGTH: usize = HEADER + ADDRESS as usize;
    let mut message = [0; LENGTH];
    message[..2].copy_from_slice(&(LENGTH as u16).to_ne_bytes());
    message[2..4].copy_from_slice(&[libc::RTM_VERSION as u8, BYTE]);
    // One address follows, the destination.
    message[12] = libc::RTA_DST as u8;
    message[HEADER] = ADDRESS;
    let sent = (&*socket).write(&message);
    assert!(sent.is_err(), "there is no such message");
}

/// Tries to set a lock of this type, relative to `whence`, on the file.
fn lock(file: &File, kind: i16, whence: i16) -> i32 {
    let lock = libc::flock { l_start: 0, l_len: 1, l_pid: 0, l_type: kind, l_whence: whence };
    // SAFETY: the structure outlives the call.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLK, &lock) }
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.operands.bytes", |cx| {
        // The kernel compares the name of a time counter with the present one's, letter by letter.
        let counter = sysctl_name(c"kern.timecounter.hardware");
        let present = sysctl(&counter, None).expect("a name")[0];
        shows_only(cx, kcov_cmp_size(0), (BYTE.into(), present.into()), || {
            assert!(sysctl(&counter, Some(&[BYTE, 0])).is_err(), "there is no such counter");
        });
    }),
    check("cmp.operands.shorts", |cx| {
        // The kernel compares the protocol of each routing socket with that of the
        // message's address.
        let (_other, socket) = (routing(SHORT), routing(0));
        shows(cx, kcov_cmp_size(1), &[(SHORT.into(), 0)], || route(&socket));
    }),
    check("cmp.operands.ints", |cx| {
        // The kernel compares the user of each process with the argument.
        shows(cx, kcov_cmp_size(2), &[(0, INT.into())], || {
            // SAFETY: the call takes no pointer.
            unsafe { libc::getpriority(libc::PRIO_USER, INT) };
        });
    }),
    check("cmp.operands.constant-byte", |cx| {
        // The kernel looks for the end of a name. These letters are greater than, less
        // than and equal to the constant.
        for letter in [BYTE, b'!', b'/'] {
            let name = [letter, BYTE, 0];
            let kind = kcov_cmp_size(0) | KCOV_CMP_CONST;
            shows(cx, kind, &[(b'/'.into(), letter.into())], || {
                // SAFETY: the name ends with a zero byte.
                let returned = unsafe { libc::access(name.as_ptr().cast(), libc::F_OK) };
                assert_eq!(returned, -1, "there is no such file");
            });
        }
    }),
    check("cmp.operands.constant-short", |cx| {
        // The kernel asks whether the lock is relative to the position.
        let file = File::open("/dev/null").expect("a device");
        let constant = libc::SEEK_CUR as u64;
        let kind = kcov_cmp_size(1) | KCOV_CMP_CONST;
        shows_only(cx, kind, (constant, SHORT.into()), || {
            assert_eq!(lock(&file, libc::F_RDLCK, SHORT as i16), -1, "there is no such start");
        });
        // Values that are not greater than the constant.
        for whence in [libc::SEEK_SET, libc::SEEK_CUR] {
            shows(cx, kind, &[(constant, whence as u64)], || {
                let _ = lock(&file, libc::F_RDLCK, whence as i16);
            });
        }
    }),
    check("cmp.operands.constant-long", constant_long),
    check("cmp.operands.switch-over-byte", |cx| {
        // The kernel switches over the type of the message. These are all cases.
        let socket = routing(0);
        let cases = [1, 2, 3, 4, 8];
        shows_switch(cx, kcov_cmp_size(0) | KCOV_CMP_CONST, &cases, BYTE.into(), || route(&socket));
    }),
    check("cmp.operands.switch-over-short", |cx| {
        // The kernel switches over the type of the lock. These are all cases. The type
        // is signed, and the compiler would extend a negative one.
        const KIND: i16 = 0x1234;
        let file = File::open("/dev/null").expect("a device");
        let cases = [libc::F_RDLCK, libc::F_UNLCK, libc::F_WRLCK];
        let known = |value: i16| cases.map(|case| (case as u64, value as u64));
        let constant_short = kcov_cmp_size(1) | KCOV_CMP_CONST;
        shows(cx, constant_short, &known(KIND), || {
            assert_eq!(lock(&file, KIND, libc::SEEK_SET as i16), -1, "there is no such lock");
        });
        // The cases lie before and after the one that is taken.
        shows(cx, constant_short, &known(libc::F_UNLCK), || {
            let _ = lock(&file, libc::F_UNLCK, libc::SEEK_SET as i16);
        });
    }),
    check("cmp.operands.switch-over-long", |cx| {
        // A request that takes no argument, and that no file knows.
        const REQUEST: u64 = 0x9234_5678_2000_5678;
        let (out, _into) = pipe().expect("a pipe");
        // A pipe switches over its own requests, such as FIONSPACE, and those of all files, such as
        // FIONREAD, and of terminals: TIOCGPGRP and TIOCSPGRP.
        let known = [0x4004_6678, libc::FIONREAD, 0x4004_7477, libc::FIONBIO, 0x8004_7476];
        let known = known.map(|request| (request, REQUEST));
        shows(cx, kcov_cmp_size(3) | KCOV_CMP_CONST, &known, || {
            // SAFETY: there is no such request, so the kernel uses no argument.
            let returned = unsafe { libc::ioctl(out.as_raw_fd(), REQUEST, 0) };
            assert_eq!(returned, -1, "there is no such request");
        });
    }),
];
