//! Closing a device.

use super::{COVER_SIZE, mapped, open, sized};
use crate::check::{Context, checks};
use crate::checks::shared::close::gives_back_bytes;
use crate::checks::shared::other_stays_traced;
use crate::raw::{Device, KCOV_TRACE_PC};
use std::sync::Mutex;

checks! {
    "close.succeeds-in-every-state": succeeds_in_every_state,
    "close.instance-is-freed": instance_is_freed seconds(240),
    "close.while-enabled-by-other-thread": while_enabled_by_other_thread,
    "close.while-enabled-nobody-can-disable": while_enabled_nobody_can_disable,
}

/// On NetBSD, close(2) returns the driver's result. Linux ignores it, so Linux has no such check.
fn succeeds_in_every_state(cx: &Context) {
    assert_eq!(super::open(cx).close(), Ok(()));
    assert_eq!(sized(cx, COVER_SIZE).close(), Ok(()));
    let (device, _map) = mapped(cx);
    assert_eq!(device.close(), Ok(()));
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert_eq!(device.close(), Ok(()));
}

fn instance_is_freed(cx: &Context) {
    // An instance takes more than 64 bytes, and so would a second buffer without pages.
    const TIMES: u64 = 10_000;
    let other = sized(cx, COVER_SIZE);
    gives_back_bytes(TIMES, TIMES * 64, || {
        drop(open(cx));
        assert!(other.init_trace(COVER_SIZE).is_err(), "it has a size");
    });
}

/// A thread that does not own the device closes the last file descriptor. The owner stays traced.
fn while_enabled_by_other_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    let last = Mutex::new(Some(device));
    let enable = || {
        let device = last.lock().expect("the descriptor");
        device.as_ref().expect("not closed").enable(KCOV_TRACE_PC)
    };
    other_stays_traced(&map, enable, || drop(last.lock().expect("the descriptor").take()));
}

fn while_enabled_nobody_can_disable(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    let other = sized(cx, COVER_SIZE);
    cx.refused_by(&other, Device::disable);
}
