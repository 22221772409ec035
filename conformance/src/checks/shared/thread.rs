//! Threads: who is traced, and what a thread's end does.

use super::{mapped, while_other_is_enabled};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, Map, call, settled, thread};

checks! {
    only_the_enabling_one_is_traced,
    new_one_is_not_traced,
    one_at_a_time_per_device,
    exit_keeps_the_records,
}

/// What many calls of this thread add to a map whose owner is blocked.
pub(crate) fn added_by_calls(map: &Map) -> u64 {
    let before = settled(map);
    // Full, it would not grow whoever were traced.
    assert!(before < map.words() as u64 - 1, "the buffer has room");
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
