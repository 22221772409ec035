//! Truncated devices. This reaches every mapping of kcov on the machine, as in `truncate`.

use crate::check::{Context, checks};
use crate::checks::api::lost::gives_up;
use crate::checks::api::{intruder, kind, left, lend, open};
use crate::raw::{Child, call, child, page_size, page_words};
use kcov::mode::TracePc;
use kcov::{ChildBuffer, Device, ErrorKind};
use nix::sys::signal::Signal;
use nix::unistd::ftruncate;
use std::os::fd::AsFd as _;

checks! {
    "api.lost.truncated-device-is-noticed": truncated_device_is_noticed,
    "api.lost.device-truncated-by-a-child-is-noticed": device_truncated_by_a_child_is_noticed,
    "api.lost.partly-truncated-device-is-noticed": partly_truncated_device_is_noticed,
}

/// Asserts that a buffer is lost, and that an access would end this process.
#[track_caller]
fn is_lost(buffer: &mut ChildBuffer<TracePc, &mut Device>) {
    assert_eq!(kind(buffer.trace()), ErrorKind::BufferLost);
    assert_eq!(kind(buffer.device().check_readable()), ErrorKind::BufferLost);
    let access = Child::start(|| buffer.reset());
    assert_eq!(access.outcome(), Err(Signal::SIGBUS));
}

fn truncated_device_is_noticed(cx: &Context) {
    let (mut device, other) = (open(cx, 4096), open(cx, 4096));
    let mut buffer = lend(&mut device);
    assert!(left(&buffer).is_empty());
    ftruncate(other.as_fd(), 0).expect("root truncates");
    is_lost(&mut buffer);
    // All devices have one file.
    assert_eq!(kind(other.check_readable()), ErrorKind::BufferLost);
    other.abandon();
    gives_up(cx, device);
}

fn device_truncated_by_a_child_is_noticed(cx: &Context) {
    let mut device = open(cx, 4096);
    let mut buffer = lend(&mut device);
    child(|| {
        let session = buffer.enable().expect("enabled in the child");
        call();
        ftruncate(session.device().as_fd(), 0).expect("root truncates");
        std::mem::forget(session);
    });
    is_lost(&mut buffer);
    gives_up(cx, device);
}

fn partly_truncated_device_is_noticed(cx: &Context) {
    let mut device = open(cx, 4 * page_words());
    let full = device.capacity(TracePc) as u64;
    let map = intruder(&device);
    let buffer = lend(&mut device);
    let bytes = libc::off_t::try_from(page_size()).expect("a size");
    ftruncate(buffer.device().as_fd(), bytes).expect("root truncates");
    assert_eq!(kind(buffer.device().check_readable()), ErrorKind::BufferLost);
    map.store(0, 1);
    assert_eq!(left(&buffer).len(), 1, "what is left of it can be read");
    map.store(0, full);
    assert_eq!(kind(buffer.trace()), ErrorKind::BufferLost);
    gives_up(cx, device);
}
