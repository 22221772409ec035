//! Closing, and what ends without it.

use super::{COVER_SIZE, is_freed, mapped, sized};
use crate::check::{Context, checks};
use crate::errno::Errno;
use crate::raw::{Gate, KCOV_TRACE_PC, call, child, thread};
use std::sync::Mutex;

checks! {
    while_enabled_ends_with_the_thread,
    while_enabled_by_other_thread,
    while_enabled_nobody_can_disable,
    process_may_end_in_every_state,
    other_number_of_a_descriptor,
}

fn while_enabled_ends_with_the_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    thread(move || {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        device.close().expect("closed");
    });
    map.reset();
    for _ in 0..100 {
        call();
    }
    assert_eq!(map.count(), 0);
    assert!(is_freed(&sized(cx, COVER_SIZE)));
}

/// The last descriptor is closed by a thread that does not own the device, and the owner goes on.
fn while_enabled_by_other_thread(cx: &Context) {
    let (device, map) = mapped(cx);
    let (enabled, closed) = (Gate::default(), Gate::default());
    let last = Mutex::new(Some(device));
    std::thread::scope(|scope| {
        let traced = scope.spawn(|| {
            let device = last.lock().expect("the descriptor");
            device.as_ref().expect("not closed").enable(KCOV_TRACE_PC).expect("enabled");
            drop(device);
            enabled.open();
            closed.wait();
            map.reset();
            call();
            map.count()
        });
        enabled.wait();
        drop(last.lock().expect("the descriptor").take());
        closed.open();
        assert!(traced.join().expect("the thread") > 0, "it is still traced");
    });
}

fn while_enabled_nobody_can_disable(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    device.close().expect("closed");
    let other = sized(cx, COVER_SIZE);
    cx.refused(other.disable());
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
