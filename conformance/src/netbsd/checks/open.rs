//! Opening the device node, its file operations, and requests that the driver, or an older one, does
//! not know.

use super::*;
use kcov_sys::ioc::Encoding;
use kcov_sys::netbsd::{
    KCOV_IOC_DISABLE, KCOV_IOC_ENABLE, KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH,
    KCOV_IOC_SETBUFSIZE,
};
use nix::fcntl::FdFlag;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::fstat;
use nix::unistd::{fsync, ftruncate};
use std::os::unix::fs::FileTypeExt as _;
use std::ptr::from_ref;

const NETBSD: Encoding = Encoding::NETBSD;

/// Neighbours of the known numbers, known numbers with other arguments, and requests of other
/// devices. The kernel passes all of them to the driver.
fn unknown() -> impl Iterator<Item = u32> {
    let io = [0, 1, 2, 4, 9, 12, 255].map(|number| NETBSD.io(b'K', number));
    let iow = [(1, 4), (2, 8), (3, 4)].map(|(number, size)| NETBSD.iow(b'K', number, size));
    let others = [NETBSD.io(b'L', 3), Encoding::LINUX_GENERIC.io(b'c', 100), 0];
    io.into_iter().chain(iow).chain(others)
}

/// Numbers that differ from a known one in a bit. The kernel passes no argument of over 4096 bytes
/// to a driver.
fn near_misses() -> impl Iterator<Item = u32> {
    const KNOWN: [u32; 5] = [
        KCOV_IOC_SETBUFSIZE,
        KCOV_IOC_ENABLE,
        KCOV_IOC_DISABLE,
        KCOV_IOC_REMOTE_ATTACH,
        KCOV_IOC_REMOTE_DETACH,
    ];
    let near = |number| (0..32).map(move |bit| number ^ (1 << bit));
    let is_unknown = |number: &u32| !KNOWN.contains(number) && number >> 16 & 0x1fff <= 4096;
    KNOWN.into_iter().flat_map(near).filter(is_unknown)
}

/// Issues each of them with an argument that points to memory.
#[track_caller]
pub(crate) fn unknown_are_refused(cx: &Context, device: &Device) {
    // The kernel reads as many bytes as the number says.
    let words = [1_u64; 512];
    let request =
        |device: &Device, number| device.request(number, from_ref(&words).expose_provenance());
    for number in unknown() {
        cx.refused_by(device, |device| request(device, number));
    }
    cx.refused_by(device, |device| {
        near_misses().for_each(|number| cx.refused(request(device, number)));
        request(device, 0)
    });
}

pub(crate) const CHECKS: &[Check] = &[
    check("open.device-node", |cx| {
        let metadata = std::fs::metadata(cx.device()).expect("stat of the node");
        assert!(metadata.file_type().is_char_device());
        assert_eq!(cx.device().file_name(), Some("kcov".as_ref()));
        open(cx);
    }),
    check("open.no-close-on-exec", |cx| {
        let mode = nix::sys::stat::Mode::empty();
        let fd = nix::fcntl::open(cx.device(), OFlag::O_RDWR, mode).expect("the device opens");
        let flags = fcntl(&fd, FcntlArg::F_GETFD).expect("F_GETFD");
        assert!(!FdFlag::from_bits_retain(flags).contains(FdFlag::FD_CLOEXEC));
    }),
    check("open.without-a-second-descriptor-is-refused", |cx| {
        let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).expect("the limit");
        // The lowest free number becomes the last one that the limit permits.
        let lowest = File::open("/dev/null").expect("a file").as_raw_fd();
        let limit = rlim_t::try_from(lowest + 1).expect("a limit");
        setrlimit(Resource::RLIMIT_NOFILE, limit, hard).expect("a lower limit");
        let refused = Device::open(cx.device()).map(drop);
        let free = File::open("/dev/null").map(|file| file.as_raw_fd());
        setrlimit(Resource::RLIMIT_NOFILE, soft, hard).expect("the old limit");
        cx.refused(refused);
        assert_eq!(free.expect("the descriptor is free again"), lowest);
    }),
    check("open.stat-is-refused", |cx| call_is_refused(cx, |it| fstat(it).map(drop))),
    on_device("open.poll-reports-nothing", one_page, |_, device| {
        let mut polled = [PollFd::new(device.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT)];
        assert_eq!(poll(&mut polled, PollTimeout::ZERO), Ok(0));
        assert_eq!(polled[0].revents(), Some(PollFlags::empty()));
    }),
    check("open.nonblocking-is-refused", |cx| {
        call_is_refused(cx, |it| fcntl(it, FcntlArg::F_SETFL(OFlag::O_NONBLOCK)));
    }),
    check("open.sync-is-refused", |cx| call_is_refused(cx, |it| fsync(it))),
    check("open.truncate-is-refused", |cx| call_is_refused(cx, |it| ftruncate(it, 0))),
    check("open.truncate-is-refused-as-invalid", |cx| call_is_refused(cx, |it| ftruncate(it, 0))),
    check("request.remote-is-refused-as-unknown", |cx| {
        let words = [0_u64; 2];
        for number in [KCOV_IOC_REMOTE_ATTACH, KCOV_IOC_REMOTE_DETACH] {
            cx.refused_by(&open(cx), |device| {
                device.request(number, from_ref(&words).expose_provenance())
            });
        }
    }),
];
