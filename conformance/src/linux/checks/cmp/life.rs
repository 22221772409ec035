//! New threads, children and programs in comparison mode. On NetBSD, creating one records more
//! comparisons than a buffer holds, so these are Linux's alone.

use crate::check::{Context, checks};
use crate::checks::shared::cmp::life::{collects, enabled};
use crate::checks::shared::exec::goes_on_in_a_new_program;
use crate::checks::shared::thread::added_records;
use crate::raw::{KCOV_TRACE_CMP, Map, child, settled, thread};

checks! {
    "cmp.life.new-thread-is-not-traced": new_thread_is_not_traced,
    "cmp.life.forked-child-is-not-traced": forked_child_is_not_traced,
    "cmp.life.tracing-goes-on-in-a-new-program": tracing_goes_on_in_a_new_program,
}

/// Counts the records that calls of the current thread add. Resets the count first, since creating
/// the thread or child may have filled the buffer.
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
    // The parent blocks until the child sends its result.
    assert_eq!(child(|| added_after_reset(&map)), 0);
    collects(&map);
}

fn tracing_goes_on_in_a_new_program(cx: &Context) {
    goes_on_in_a_new_program(cx, KCOV_TRACE_CMP);
}
