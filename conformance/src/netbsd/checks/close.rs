//! What closing, the end of a thread and executing a program do.

use crate::checks::prelude::*;
use crate::checks::shared::close::gives_back_bytes;
use crate::checks::shared::exec::traced_helper;
use nix::fcntl::{FcntlArg, FdFlag, fcntl};
use std::os::fd::AsRawFd as _;
use std::process::Stdio;
use std::sync::Mutex;

pub(crate) const CHECKS: &[Check] = &[
    // On NetBSD, close(2) returns the driver's result. Linux ignores it, so Linux has no
    // such check.
    check("close.succeeds-in-every-state", |cx| {
        assert_eq!(super::open(cx).close(), Ok(()));
        assert_eq!(sized(cx, COVER_SIZE).close(), Ok(()));
        let (device, _map) = mapped(cx);
        assert_eq!(device.close(), Ok(()));
        let device = enabled(cx, KCOV_TRACE_PC);
        assert_eq!(device.close(), Ok(()));
    }),
    slow("close.instance-is-freed", 240, |cx| {
        // An instance takes more than 64 bytes, and so would a second buffer without pages.
        const TIMES: u64 = 10_000;
        let other = sized(cx, COVER_SIZE);
        gives_back_bytes(TIMES, TIMES * 64, || {
            drop(open(cx));
            assert!(other.init_trace(COVER_SIZE).is_err(), "it has a size");
        });
    }),
    // A thread that does not own the device closes the last file descriptor. The owner stays
    // traced.
    check("close.while-enabled-by-other-thread", |cx| {
        let (device, map) = mapped(cx);
        let last = Mutex::new(Some(device));
        let enable = || {
            let device = last.lock().expect("the descriptor");
            device.as_ref().expect("not closed").enable(KCOV_TRACE_PC)
        };
        other_stays_traced(&map, enable, || drop(last.lock().expect("the descriptor").take()));
    }),
    check("close.while-enabled-nobody-can-disable", |cx| {
        let device = enabled(cx, KCOV_TRACE_PC);
        device.close().expect("closed");
        let other = sized(cx, COVER_SIZE);
        cx.refused_by(&other, Device::disable);
    }),
    check("thread.buffer-belongs-to-no-thread", |cx| {
        let (_device, map) = mapped(cx);
        map.store(0, 5);
        thread(|| {
            assert_eq!(map.load(0), 5);
            map.store(0, 6);
        });
        assert_eq!(map.load(0), 6);
    }),
    check("exec.new-program-can-disable", |cx| {
        let (device, map) = mapped_of(cx, EXEC_WORDS);
        fcntl(&device, FcntlArg::F_SETFD(FdFlag::empty())).expect("F_SETFD");
        let inherited = device.as_raw_fd().to_string();
        let mut command = traced_helper(&device, KCOV_TRACE_PC);
        command.args(["--disable", &inherited]).stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.status().expect("a child");
        assert!(status.success(), "the new program disables: {status}");
        assert!(map.count() > 0, "the child was traced");
    }),
];
