//! Comparisons of each size that only calls of Linux make.

use super::*;
use crate::checks::shared::cmp::collect;
use crate::checks::shared::cmp::operands::{self, shows, shows_only, shows_switch};
use nix::pty::{PtyMaster, grantpt, posix_openpt, ptsname_r, unlockpt};
use nix::sys::signal::raise;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, SockaddrIn, bind, socket};
use nix::sys::termios::SpecialCharacterIndices::{VERASE, VSTART, VSTOP};
use nix::sys::termios::{InputFlags, LocalFlags, SetArg, tcgetattr};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::setsid;
use std::fs::OpenOptions;
use std::mem::ManuallyDrop;

/// The controlling terminal of this process, which must not lead a process group. The terminal's
/// special characters are unlike all others.
struct Terminal {
    /// Stays open: closing it hangs up on this process.
    _master: ManuallyDrop<PtyMaster>,
    slave: File,
}

const START: u8 = 0x81;
const STOP: u8 = 0x92;
const ERASE: u8 = 0xd6;

impl Terminal {
    fn new() -> Terminal {
        let master = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY).expect("a terminal");
        grantpt(&master).expect("granted");
        unlockpt(&master).expect("unlocked");
        let name = ptsname_r(&master).expect("its name");
        setsid().expect("a session without a terminal");
        // The first terminal that a session opens becomes its controlling terminal.
        let slave = OpenOptions::new().read(true).write(true).open(name).expect("its other end");
        let mut settings = tcgetattr(&slave).expect("its settings");
        settings.input_flags |= InputFlags::IXON;
        settings.local_flags |= LocalFlags::ICANON;
        settings.local_flags &= !LocalFlags::ECHO;
        for (index, character) in [(VSTART, START), (VSTOP, STOP), (VERASE, ERASE)] {
            settings.control_chars[index as usize] = character;
        }
        nix::sys::termios::tcsetattr(&slave, SetArg::TCSANOW, &settings).expect("set");
        Terminal { _master: ManuallyDrop::new(master), slave }
    }

    /// Makes the character arrive as if typed.
    fn types(&self, character: u8) {
        // SAFETY: the request reads one byte, `character`.
        let returned = unsafe { libc::ioctl(self.slave.as_raw_fd(), libc::TIOCSTI, &character) };
        assert_eq!(returned, 0, "{}", std::io::Error::last_os_error());
    }
}

fn datagram() -> OwnedFd {
    let flags = SockFlag::empty();
    socket(AddressFamily::Inet, SockType::Datagram, flags, None).expect("a socket")
}

/// An `int` as an operand.
fn operand(value: i32) -> u64 {
    u64::from(value as u32)
}

pub(crate) const CHECKS: &[Check] = &[
    check("cmp.operands.bytes", |cx| {
        // The terminal first compares a special character with the other ones.
        child(|| {
            let terminal = Terminal::new();
            for other in [START, STOP] {
                let operands = (u64::from(ERASE), u64::from(other));
                shows_only(cx, kcov_cmp_size(0), operands, || terminal.types(ERASE));
            }
        });
    }),
    check("cmp.operands.shorts", |cx| {
        // The kernel compares a port with others in its hash bucket. There are fewer than 16384
        // buckets. The highest bit is set, so sign extension would show.
        const FIRST: u16 = 0x9234;
        const SECOND: u16 = 0xd234;
        let (first, second) = (datagram(), datagram());
        let address = |port| SockaddrIn::new(0, 0, 0, 0, port);
        bind(first.as_raw_fd(), &address(FIRST)).expect("bound");
        shows_only(cx, kcov_cmp_size(1), (FIRST.into(), SECOND.into()), || {
            bind(second.as_raw_fd(), &address(SECOND)).expect("bound");
        });
    }),
    check("cmp.operands.ints", |cx| {
        // dup3 compares its two arguments. The first is not a file descriptor. The
        // highest bit is set, so sign extension would show.
        const FIRST: u32 = 0x9234_5678;
        const SECOND: u32 = 0x9234_5670;
        for second in [SECOND, FIRST] {
            shows_only(cx, kcov_cmp_size(2), (FIRST.into(), second.into()), || {
                // SAFETY: the call takes no pointer.
                let returned = unsafe { libc::syscall(libc::SYS_dup3, FIRST, second, 0) };
                assert_eq!(returned, -1, "these are no descriptors");
            });
        }
    }),
    check("cmp.operands.constant-byte", |cx| {
        child(|| {
            let terminal = Terminal::new();
            for constant in [b'\r', b'\n'] {
                let operands = (u64::from(constant), u64::from(ERASE));
                let kind = kcov_cmp_size(0) | KCOV_CMP_CONST;
                shows_only(cx, kind, operands, || terminal.types(ERASE));
            }
        });
    }),
    check("cmp.operands.constant-short", |cx| {
        // The kernel compares the family of an address with that of the socket. The
        // highest bit is set, so sign extension would show.
        const FAMILY: u16 = 0x9234;
        let socket = datagram();
        let mut address = [0_u8; 16];
        address[..2].copy_from_slice(&FAMILY.to_ne_bytes());
        let operands = (libc::AF_INET as u64, FAMILY.into());
        shows_only(cx, kcov_cmp_size(1) | KCOV_CMP_CONST, operands, || {
            // SAFETY: the call reads 16 bytes, which `address` has.
            let returned = unsafe { libc::bind(socket.as_raw_fd(), address.as_ptr().cast(), 16) };
            assert_eq!(returned, -1, "the socket is of another family");
        });
    }),
    check("cmp.operands.constant-zero", |cx| {
        // dup3 compares its flags, without the one that it knows, with zero.
        const FLAGS: u32 = 0x9234_5678 & !(libc::O_CLOEXEC as u32);
        shows(cx, kcov_cmp_size(2) | KCOV_CMP_CONST, &[(0, FLAGS.into())], || {
            // SAFETY: the call takes no pointer.
            let returned = unsafe { libc::syscall(libc::SYS_dup3, -1, -1, FLAGS) };
            assert_eq!(returned, -1, "there are no such flags");
        });
    }),
    check("cmp.operands.negative-constant", |cx| {
        // A relative path starts at a descriptor, or at this constant.
        const DESCRIPTOR: u32 = 0x9234_5678;
        let constant = operand(libc::AT_FDCWD);
        shows(cx, kcov_cmp_size(2) | KCOV_CMP_CONST, &[(constant, DESCRIPTOR.into())], || {
            // SAFETY: the path ends with a zero byte.
            let returned = unsafe { libc::openat(DESCRIPTOR as i32, c"file".as_ptr(), 0) };
            assert_eq!(returned, -1, "this is no descriptor");
        });
    }),
    check("cmp.operands.constant-long", |cx| {
        operands::constant_long(cx);
        // The kernel also compares the seconds of a timeout with a limit of more than 32
        // bits. It does not wait, since the futex has another value.
        const SECONDS: u64 = 0x1234_5678_1234_5678;
        const WHOLE: [u64; 2] = [999_999_999, 1_000_000_000];
        let (futex, number, wait) = (0_u32, libc::SYS_futex, libc::FUTEX_WAIT);
        let waits = |nanoseconds| {
            let time = [SECONDS, nanoseconds];
            collect(cx, || {
                // SAFETY: the kernel reads the futex and two words, which `time` has.
                let returned = unsafe { libc::syscall(number, &raw const futex, wait, 1, &time) };
                assert_eq!(returned, -1, "the futex has another value");
            })
        };
        let found = WHOLE.map(waits).concat();
        let shows = |constants: [u64; 2], is_wanted: fn(u64, u64) -> bool| {
            let mut all = found.iter().filter(|c| c.kind == kcov_cmp_size(3) | KCOV_CMP_CONST);
            all.any(|c| constants.contains(&c.first) && is_wanted(c.first, c.second))
        };
        // The compiler may compare with either constant.
        assert!(shows([9_223_372_035, 9_223_372_036], |_, value| value == SECONDS), "{found:#x?}");
        assert!(shows(WHOLE, |constant, value| constant == value), "the same twice: {found:#x?}");
    }),
    check("cmp.operands.switch-over-byte", |cx| {
        // The kernel switches over the first byte of an IP option, which is its type.
        // The highest bit of the second type is set, so sign extension would show.
        let socket = datagram();
        // These are all cases of the switch, including those in the middle.
        let cases = [7, 0x44, 0x83, 0x86, 0x89, 0x94];
        let (fd, level, name) = (socket.as_raw_fd(), libc::IPPROTO_IP, libc::IP_OPTIONS);
        for option in [0x5a_u8, 0x9a] {
            let options = [option, 3, 4, 0];
            shows_switch(cx, kcov_cmp_size(0) | KCOV_CMP_CONST, &cases, option.into(), || {
                // SAFETY: the call reads four bytes, which `options` has.
                unsafe { libc::setsockopt(fd, level, name, options.as_ptr().cast(), 4) };
            });
        }
    }),
    check("cmp.operands.switch-over-short", |cx| {
        // The kernel switches over the type of a socket.
        let kind = libc::SOCK_DGRAM as u64;
        let known = [libc::SOCK_STREAM, libc::SOCK_DGRAM, libc::SOCK_RAW, libc::SOCK_SEQPACKET];
        let known = known.map(|of| (of as u64, kind));
        shows(cx, kcov_cmp_size(1) | KCOV_CMP_CONST, &known, || {
            let flags = SockFlag::empty();
            drop(socket(AddressFamily::Unix, SockType::Datagram, flags, None).expect("a socket"));
        });
        // It also switches over the family of an address. The highest bit is set, so sign extension
        // would show.
        let family = WIDE as u16;
        let known = [libc::AF_UNSPEC, libc::AF_INET, libc::AF_INET6];
        let known = known.map(|case| (case as u64, family.into()));
        let (domain, flags) = (AddressFamily::Inet6, SockFlag::empty());
        let sender = socket(domain, SockType::Datagram, flags, None).expect("a socket");
        let mut address = [0; 28];
        address[..2].copy_from_slice(&family.to_ne_bytes());
        shows(cx, kcov_cmp_size(1) | KCOV_CMP_CONST, &known, || {
            let (fd, address) = (sender.as_raw_fd(), address.as_ptr());
            // SAFETY: the message is empty, and `address` has the 28 bytes that the call reads.
            let sent = unsafe { libc::sendto(fd, address.cast(), 0, 0, address.cast(), 28) };
            assert_eq!(sent, -1, "there is no such family");
        });
    }),
    check("cmp.operands.switch-over-int", |cx| {
        let constant_int = kcov_cmp_size(2) | KCOV_CMP_CONST;
        // The cases lie before and after the one that is taken.
        let option = libc::PR_GET_DUMPABLE;
        let cases = [CASES, &[operand(option)]].concat();
        let known: Vec<_> = cases.into_iter().map(|case| (case, operand(option))).collect();
        shows(cx, constant_int, &known, || {
            // SAFETY: the option uses no argument.
            let returned = unsafe { libc::prctl(option, 0, 0, 0, 0) };
            assert!(returned >= 0, "{}", std::io::Error::last_os_error());
        });
        // The numbers of some requests for a terminal have the highest bit set, so sign
        // extension of a case would show.
        let cases = [libc::TIOCGPTN as u32, libc::TIOCSPTLCK as u32];
        assert!(cases.iter().any(|case| case >> 31 == 1));
        let terminal = posix_openpt(OFlag::O_RDWR | OFlag::O_NOCTTY).expect("a terminal");
        let known = cases.map(|case| (case.into(), MAGIC.into()));
        shows(cx, constant_int, &known, || {
            // SAFETY: the kernel knows no such request, so it uses no argument.
            let returned = unsafe { libc::ioctl(terminal.as_raw_fd(), MAGIC as libc::Ioctl, 0) };
            assert_eq!(returned, -1, "there is no such request");
        });
        // The kernel also switches over a command for a network device. It knows about
        // seventy. These are two of the first and the last two.
        const COMMANDS: [u64; 4] = [0x3, 0xa, 0x50, 0x51];
        let socket = datagram();
        for mut command in [MAGIC, WIDE as u32] {
            // SAFETY: zero is a valid value of every field.
            let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
            request.ifr_name[..2].copy_from_slice(&b"lo".map(|letter| letter as libc::c_char));
            request.ifr_ifru.ifru_data = (&raw mut command).cast();
            let known = COMMANDS.map(|case| (case, command.into()));
            shows(cx, constant_int, &known, || {
                // SAFETY: the request reads the structure and the command that it points to.
                let returned =
                    unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL as _, &request) };
                assert_eq!(returned, -1, "there is no such command");
            });
        }
    }),
    check("cmp.operands.switch-over-long", |cx| {
        // A ptrace request is a long, and the calling thread itself looks it up.
        const REQUEST: i64 = 0x1234_5678_1234_5678;
        let traced = Child::start(|| {
            // SAFETY: the request takes no argument.
            let returned =
                unsafe { libc::syscall(libc::SYS_ptrace, libc::PTRACE_TRACEME, 0, 0, 0) };
            assert_eq!(returned, 0, "{}", std::io::Error::last_os_error());
            raise(Signal::SIGSTOP).expect("stopped");
        });
        let pid = traced.pid;
        waitpid(pid, Some(WaitPidFlag::WUNTRACED)).expect("the child stops");
        let known = [libc::PTRACE_SETOPTIONS, libc::PTRACE_GETSIGINFO];
        let known = known.map(|request| (request as u64, REQUEST as u64));
        shows(cx, kcov_cmp_size(3) | KCOV_CMP_CONST, &known, || {
            // SAFETY: there is no such request, so the kernel uses no argument.
            let returned = unsafe { libc::syscall(libc::SYS_ptrace, REQUEST, pid.as_raw(), 0, 0) };
            assert_eq!(returned, -1, "there is no such request");
        });
        kill(pid, Signal::SIGCONT).expect("it goes on");
        traced.kill();
    }),
];
