//! Soft interrupts in the middle of a thread. The root hub completes a control request in a softirq,
//! usually during a system call of the thread that made the request.

use super::section::{bus, grows_beyond};
use super::{common, while_owned};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_CMP, Map, Remote, RootHub, Vhost, call, settled, thread};
use crate::system::checks::{index, mapped};

checks! {
    "remote.soft.owners-own-is-collected": owners_own_is_collected,
    "remote.soft.comparisons-are-collected": comparisons_are_collected,
    "remote.soft.leaves-the-mode": leaves_the_mode,
    "remote.soft.keeps-its-areas": keeps_its_areas,
    "remote.soft.area-size-is-its-own": area_size_is_its_own,
}

/// How often the hub works.
const TIMES: usize = 10;

fn hub() -> RootHub {
    RootHub::open().expect("the hub")
}

/// Panics unless the hub's work adds records.
#[track_caller]
fn is_collected(hub: &RootHub, map: &Map) {
    let before = settled(map);
    hub.work().expect("an answer");
    assert!(grows_beyond(map, before), "the softirq adds nothing");
}

/// Panics unless all records are comparisons.
#[track_caller]
fn are_comparisons(map: &Map) {
    let words = 4 * index(map.count());
    assert!((1..map.words()).contains(&words), "{words} words");
    for record in map.copy(1, words).chunks_exact(4) {
        assert!(record[0] < 8 && record[3] >= 4096, "{record:#x?}");
    }
}

fn owners_own_is_collected(cx: &Context) {
    let (device, map) = mapped(cx);
    let hub = hub();
    RootHub::complete_here();
    device.remote_enable(&Remote::of(bus())).expect("enabled");
    (0..TIMES).for_each(|_| is_collected(&hub, &map));
}

fn comparisons_are_collected(cx: &Context) {
    let (device, map) = mapped(cx);
    let hub = hub();
    let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::of(bus()) };
    device.remote_enable(&remote).expect("enabled");
    for _ in 0..TIMES {
        map.reset();
        is_collected(&hub, &map);
        are_comparisons(&map);
    }
}

fn leaves_the_mode(cx: &Context) {
    let ((local, own), (other, soft)) = (mapped(cx), mapped(cx));
    let hub = hub();
    RootHub::complete_here();
    while_owned(&other, &Remote::of(bus()), || {
        local.enable(KCOV_TRACE_CMP).expect("enabled");
        for _ in 0..TIMES {
            is_collected(&hub, &soft);
            own.reset();
            call();
            are_comparisons(&own);
        }
    });
}

fn keeps_its_areas(cx: &Context) {
    // The default of CONFIG_KCOV_IRQ_AREA_SIZE.
    const IRQ_AREA_SIZE: u32 = 0x4_0000;
    let (device, map) = mapped(cx);
    let hub = hub();
    let remote = Remote { area: IRQ_AREA_SIZE, handles: vec![bus()], ..Remote::common(common()) };
    device.remote_enable(&remote).expect("enabled");
    is_collected(&hub, &map);
    let vhost = Vhost::new().expect("a device that this process owns");
    let before = settled(&map);
    (0..TIMES).for_each(|_| vhost.work());
    assert!(grows_beyond(&map, before), "the worker's sections are collected");
    is_collected(&hub, &map);
}

fn area_size_is_its_own(cx: &Context) {
    /// Room for one record.
    const LEAST: u32 = 2;
    let collected = |area| {
        // A device is enabled until its thread ends.
        thread(|| {
            let (device, map) = mapped(cx);
            let hub = hub();
            let remote = Remote { area, ..Remote::of(bus()) };
            device.remote_enable(&remote).expect("enabled");
            (0..TIMES).for_each(|_| is_collected(&hub, &map));
            settled(&map)
        })
    };
    let (least, usual) = (collected(LEAST), collected(1 << 12));
    assert!(least > usual / 2, "{least} records with areas of {LEAST} words, {usual} otherwise");
}
