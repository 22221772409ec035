//! Threads: many at once, and what a thread's end does.

use super::{COVER_SIZE, is_freed, mapped, sized};
use crate::check::{Context, checks};
use crate::checks::shared::thread::added_by_calls;
use crate::raw::{Device, KCOV_TRACE_PC, Map, call, thread};
use std::sync::Barrier;

checks! {
    one_device_for_each seconds(30),
    exit_disables,
    exit_frees_for_next_thread,
    buffer_belongs_to_no_thread,
}

fn one_device_for_each(cx: &Context) {
    for threads in [2, 4, 8, 16, 32] {
        let buffers: Vec<_> = (0..threads).map(|_| mapped(cx)).collect();
        let barrier = Barrier::new(threads);
        let one = |(device, map): &(Device, Map)| {
            device.enable(KCOV_TRACE_PC).expect("enabled");
            barrier.wait();
            // Once for the pages that it goes through: a fork has to fault them in anew.
            call();
            map.reset();
            call();
            let count = map.count();
            barrier.wait();
            device.disable().expect("disabled");
            count
        };
        let mut counts: Vec<u64> = std::thread::scope(|scope| {
            let threads: Vec<_> = buffers.iter().map(|own| scope.spawn(|| one(own))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread")).collect()
        });
        // All made one call; had they shared a buffer, counts would add up.
        counts.sort_unstable();
        assert!(counts[0] > 0, "{counts:?}");
        assert!(counts[threads / 2] < 2 * counts[0], "{counts:?}");
    }
}

fn exit_disables(cx: &Context) {
    let (device, map) = mapped(cx);
    thread(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
    assert_eq!(added_by_calls(&map), 0);
    assert!(is_freed(&device), "nobody has it enabled");
}

fn exit_frees_for_next_thread(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for round in 0..5 {
        thread(|| assert!(is_freed(&device), "round {round}"));
    }
}

fn buffer_belongs_to_no_thread(cx: &Context) {
    let (_device, map) = mapped(cx);
    map.store(0, 5);
    thread(|| {
        assert_eq!(map.load(0), 5);
        map.store(0, 6);
    });
    assert_eq!(map.load(0), 6);
}
