//! What background work adds, with the kernel thread of an io_uring ring as its example.

use super::common;
use crate::check::{Context, checks};
use crate::raw::{Child, Device, KCOV_TRACE_CMP, Map, Remote, Ring, child, settled, wait_for};
use crate::system::{index, mapped, mapped_page};
use std::time::Duration;

checks! {
    common_handle_collects_local_work needs(Remote, IoUring),
    sections_append needs(Remote, IoUring),
    records_are_those_of_the_mode needs(Remote, IoUring, Comparisons),
    work_begun_before_is_not_collected needs(Remote, IoUring),
    disable_stops_it needs(Remote, IoUring),
    other_processes_work_is_not_collected needs(Remote, IoUring),
    forked_child_inherits_common_handle needs(Remote, IoUring),
    full_buffer_stays_full needs(Remote, IoUring),
}

fn enabled(cx: &Context) -> (Device, Map) {
    let (device, map) = mapped(cx);
    device.remote_enable(&Remote::common(common())).expect("enabled");
    (device, map)
}

fn ring() -> Ring {
    Ring::new().expect("a ring")
}

/// Waits until there is more than that many records: what a section has collected is seen when
/// it ends, which may be after its work is done.
fn grows_beyond(map: &Map, count: u64) -> bool {
    wait_for(Duration::from_secs(5), || map.count() > count)
}

fn common_handle_collects_local_work(cx: &Context) {
    let (_device, map) = enabled(cx);
    assert_eq!(map.count(), 0);
    ring().work();
    assert!(grows_beyond(&map, 0), "the ring's thread adds nothing");
    assert!(map.load(1) >= 4096, "an address: {:#x}", map.load(1));
}

fn sections_append(cx: &Context) {
    let (_device, map) = enabled(cx);
    // The thread's first turn is a section, before there is work: a short one, unlike those that
    // follow work, which go on until the thread sleeps and may fill the buffer.
    let ring = ring();
    assert!(grows_beyond(&map, 0));
    let count = settled(&map);
    let early = map.copy(1, index(count));
    ring.work();
    assert!(grows_beyond(&map, count), "a later section adds to it");
    assert_eq!(map.copy(1, index(count)), early, "behind the earlier ones");
    assert_ne!(map.load(1 + index(count)), 0);
}

fn records_are_those_of_the_mode(cx: &Context) {
    let (device, map) = mapped(cx);
    let remote = Remote { mode: KCOV_TRACE_CMP, ..Remote::common(common()) };
    device.remote_enable(&remote).expect("enabled");
    ring().work();
    let count = index(settled(&map));
    assert!(count > 0 && count * 4 < map.words(), "{count}");
    for record in map.copy(1, count * 4).chunks_exact(4) {
        assert!(record[0] < 8 && record[3] >= 4096, "{record:#x?}");
    }
}

fn work_begun_before_is_not_collected(cx: &Context) {
    let early = ring();
    let (_device, map) = enabled(cx);
    early.work();
    assert_eq!(settled(&map), 0);
    ring().work();
    assert!(grows_beyond(&map, 0), "work that is begun now is collected");
}

fn disable_stops_it(cx: &Context) {
    let (device, map) = enabled(cx);
    let ring = ring();
    ring.work();
    assert!(grows_beyond(&map, 0));
    device.disable().expect("disabled");
    map.reset();
    ring.work();
    assert_eq!(settled(&map), 0);
}

fn other_processes_work_is_not_collected(cx: &Context) {
    let (device, map) = mapped(cx);
    // Forked before the handle is set, which it would inherit.
    let other: Child<()> = Child::start(|| {
        assert!(wait_for(Duration::from_secs(5), || map.load(1) == 1), "the parent is enabled");
        ring().work();
    });
    device.remote_enable(&Remote::common(common())).expect("enabled");
    map.store(1, 1);
    other.end();
    assert_eq!(settled(&map), 0);
}

fn forked_child_inherits_common_handle(cx: &Context) {
    let (_device, map) = enabled(cx);
    child(|| ring().work());
    assert!(grows_beyond(&map, 0));
}

fn full_buffer_stays_full(cx: &Context) {
    let (device, map) = mapped_page(cx);
    device.remote_enable(&Remote::common(common())).expect("enabled");
    let ring = ring();
    let full = map.words() as u64 - 1;
    for _ in 0..map.words() {
        if map.count() == full {
            break;
        }
        ring.work();
    }
    assert_eq!(settled(&map), full);
    assert_ne!(map.load(map.words() - 1), 0, "the last word holds a record");
    let words = map.copy(0, map.words());
    ring.work();
    assert_eq!(settled(&map), full);
    assert_eq!(map.copy(0, map.words()), words);
}
