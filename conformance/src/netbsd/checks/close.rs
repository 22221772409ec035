//! What closing, the end of a thread and executing a program do.

use super::*;
use crate::checks::shared::close::gives_back_bytes;
use crate::checks::shared::exec::traced_helper;
use nix::fcntl::FdFlag;

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
    on_buffer("close.while-enabled-by-other-thread", mapped, |_, device, map| {
        let last = Mutex::new(Some(device));
        let enable = || {
            let device = last.lock().expect("the descriptor");
            device.as_ref().expect("not closed").enable(KCOV_TRACE_PC)
        };
        other_stays_traced(&map, enable, || drop(last.lock().expect("the descriptor").take()));
    }),
    on_device("close.while-enabled-nobody-can-disable", enabled_pc, |cx, device| {
        device.close().expect("closed");
        let other = sized(cx, COVER_SIZE);
        cx.refused_by(&other, Device::disable);
    }),
    on_buffer("thread.buffer-belongs-to-no-thread", mapped, |_, _device, map| {
        map.store(0, 5);
        thread(|| {
            assert_eq!(map.load(0), 5);
            map.store(0, 6);
        });
        assert_eq!(map.load(0), 6);
    }),
    on_buffer("exec.new-program-can-disable", mapped_exec, |_, device, map| {
        fcntl(&device, FcntlArg::F_SETFD(FdFlag::empty())).expect("F_SETFD");
        let inherited = device.as_raw_fd().to_string();
        let mut command = traced_helper(&device, KCOV_TRACE_PC);
        command.args(["--disable", &inherited]).stdin(Stdio::null()).stdout(Stdio::null());
        let status = command.status().expect("a child");
        assert!(status.success(), "the new program disables: {status}");
        assert!(map.count() > 0, "the child was traced");
    }),
];
