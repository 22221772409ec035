//! Opening the device node, and its file operations.

use crate::checks::prelude::*;
use crate::errno::{Errno, Result};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{Resource, getrlimit, rlim_t, setrlimit};
use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _};
use std::os::unix::fs::FileTypeExt as _;

fn truncate(device: &Device) -> Result<()> {
    // SAFETY: the call takes no pointer.
    let returned = unsafe { libc::ftruncate(device.as_raw_fd(), 0) };
    Errno::check(returned).map(drop)
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
    check("open.stat-is-refused", |cx| {
        let device = sized(cx, page_words());
        cx.refused(nix::sys::stat::fstat(&device).map(drop).map_err(Errno::from));
    }),
    check("open.poll-reports-nothing", |cx| {
        let device = sized(cx, page_words());
        let mut polled = [PollFd::new(device.as_fd(), PollFlags::POLLIN | PollFlags::POLLOUT)];
        assert_eq!(poll(&mut polled, PollTimeout::ZERO), Ok(0));
        assert_eq!(polled[0].revents(), Some(PollFlags::empty()));
    }),
    check("open.nonblocking-is-refused", |cx| {
        let device = sized(cx, page_words());
        let set = fcntl(&device, FcntlArg::F_SETFL(OFlag::O_NONBLOCK));
        cx.refused(set.map_err(Errno::from));
    }),
    check("open.sync-is-refused", |cx| {
        let device = sized(cx, page_words());
        cx.refused(nix::unistd::fsync(&device).map_err(Errno::from));
    }),
    check("open.truncate-is-refused", |cx| cx.refused(truncate(&sized(cx, page_words())))),
    check("open.truncate-is-refused-as-invalid", |cx| {
        cx.refused(truncate(&sized(cx, page_words())));
    }),
];
