//! New threads, children and programs in comparison mode. On NetBSD making them records more
//! comparisons than a buffer holds.

use crate::check::{Context, checks};
use crate::checks::shared::cmp::life::{collects, enabled};
use crate::checks::shared::exec::{go_on, room_is_left, traced_program};
use crate::checks::shared::mapped_of;
use crate::checks::shared::thread::added_records;
use crate::raw::{KCOV_TRACE_CMP, Map, child, settled, thread};
use crate::system::EXEC_WORDS;

checks! {
    new_thread_is_not_traced needs(Comparisons),
    forked_child_is_not_traced needs(Comparisons),
    tracing_goes_on_in_a_new_program needs(Comparisons),
}

/// What the calls of a new thread or child add. Making it has filled the buffer, or nearly.
fn added_after_reset(map: &Map) -> u64 {
    let _ = settled(map);
    map.reset();
    added_records(map, 4)
}

fn new_thread_is_not_traced(cx: &Context) {
    let (_device, map) = enabled(cx);
    // The enabled thread blocks in the join.
    assert_eq!(thread(|| added_after_reset(&map)), 0);
    collects(&map);
}

fn forked_child_is_not_traced(cx: &Context) {
    let (_device, map) = enabled(cx);
    // The parent blocks while it waits for the child's result.
    assert_eq!(child(|| added_after_reset(&map)), 0);
    collects(&map);
}

fn tracing_goes_on_in_a_new_program(cx: &Context) {
    let (device, map) = mapped_of(cx, EXEC_WORDS);
    let child = traced_program(&device, KCOV_TRACE_CMP);
    let before = settled(&map);
    go_on(child);
    room_is_left(&map, 4);
    assert!(map.count() > before, "the new program adds nothing to {before}");
}
