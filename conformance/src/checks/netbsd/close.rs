//! Closing, and what ends without it.

use super::{COVER_SIZE, mapped, sized};
use crate::check::{Context, checks};
use crate::checks::shared::other_stays_traced;
use crate::errno::Errno;
use crate::raw::{Device, KCOV_TRACE_PC, call, child};
use std::sync::Mutex;

checks! {
    while_enabled_by_other_thread,
    while_enabled_nobody_can_disable,
    process_may_end_in_every_state,
    other_number_of_a_descriptor,
}

/// The last descriptor is closed by a thread that does not own the device, and the owner goes on.
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

fn process_may_end_in_every_state(cx: &Context) {
    // What the child leaves open, mapped and enabled its end must clear away.
    child(|| std::mem::forget(super::open(cx)));
    child(|| std::mem::forget(sized(cx, COVER_SIZE)));
    child(|| std::mem::forget(mapped(cx)));
    child(|| {
        let (device, map) = mapped(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        std::mem::forget((device, map));
    });
    child(|| {
        let (device, map) = mapped(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
        std::mem::forget(map);
    });
    let device = sized(cx, COVER_SIZE);
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()));
}

fn other_number_of_a_descriptor(cx: &Context) {
    let (device, map) = mapped(cx);
    let mut moved = std::fs::File::open("/dev/null").expect("a descriptor").into();
    nix::unistd::dup2(&device, &mut moved).map_err(Errno::from).expect("dup2");
    device.close().expect("closed");
    let moved = crate::raw::Device::from(moved);
    moved.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    call();
    assert!(map.count() > 0);
    moved.disable().expect("disabled");
    assert_eq!(moved.close(), Ok(()));
}
