//! Threads: who is traced, and what a thread's end does.

use super::{COVER_SIZE, mapped, sized, while_other_is_enabled};
use crate::check::{Context, checks};
use crate::raw::{Device, KCOV_TRACE_PC, Map, call, settled, thread};

checks! {
    only_the_enabling_one_is_traced,
    new_one_is_not_traced,
    one_at_a_time_per_device,
    one_device_for_each,
    exit_disables,
    exit_keeps_the_records,
    exit_frees_for_next_thread,
}

/// What many calls of this thread add to a map whose owner is blocked.
fn added_by_calls(map: &Map) -> u64 {
    let before = settled(map);
    for _ in 0..1000 {
        call();
    }
    map.count() - before
}

fn only_the_enabling_one_is_traced(cx: &Context) {
    let (device, map) = mapped(cx);
    while_other_is_enabled(&device, || assert_eq!(added_by_calls(&map), 0));
    assert!(map.count() > 0, "the other one was traced");
}

fn new_one_is_not_traced(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    // The enabled thread blocks in the join.
    assert_eq!(thread(|| added_by_calls(&map)), 0);
    map.reset();
    call();
    assert!(map.count() > 0, "the first one still is");
}

fn one_at_a_time_per_device(cx: &Context) {
    let (device, map) = mapped(cx);
    while_other_is_enabled(&device, || {
        assert!(device.enable(KCOV_TRACE_PC).is_err());
        assert_eq!(added_by_calls(&map), 0);
    });
}

fn one_device_for_each(cx: &Context) {
    const THREADS: usize = 8;
    let buffers: Vec<_> = (0..THREADS).map(|_| mapped(cx)).collect();
    let barrier = std::sync::Barrier::new(THREADS);
    let one = |(device, map): &(Device, Map)| {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        barrier.wait();
        map.reset();
        call();
        let count = map.count();
        barrier.wait();
        device.disable().expect("disabled");
        count
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = buffers.iter().map(|own| scope.spawn(|| one(own))).collect();
        let mut counts: Vec<_> = threads.into_iter().map(|t| t.join().expect("a thread")).collect();
        // All made one call; had they shared a buffer, counts would add up.
        counts.sort_unstable();
        assert!(counts[0] > 0, "{counts:?}");
        assert!(counts[THREADS / 2] < 2 * counts[0], "{counts:?}");
    });
}

fn exit_disables(cx: &Context) {
    let (device, map) = mapped(cx);
    thread(|| device.enable(KCOV_TRACE_PC).expect("enabled"));
    assert_eq!(added_by_calls(&map), 0);
    assert_eq!(device.enable(KCOV_TRACE_PC), Ok(()), "nobody has it enabled");
}

fn exit_keeps_the_records(cx: &Context) {
    let (device, map) = mapped(cx);
    let count = thread(|| {
        device.enable(KCOV_TRACE_PC).expect("enabled");
        map.reset();
        call();
        map.count()
    });
    assert!(count > 0);
    assert!(map.count() >= count);
    assert!(map.load(1) != 0);
}

fn exit_frees_for_next_thread(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for round in 0..20 {
        let enabled = thread(|| device.enable(KCOV_TRACE_PC));
        assert_eq!(enabled, Ok(()), "round {round}");
    }
}
