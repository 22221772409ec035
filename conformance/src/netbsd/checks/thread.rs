//! What a thread's end frees, and what belongs to no thread.

use super::{COVER_SIZE, enable_freed, mapped, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, thread};

checks! {
    "thread.exit-frees-for-next-thread": exit_frees_for_next_thread,
    "thread.buffer-belongs-to-no-thread": buffer_belongs_to_no_thread,
}

fn exit_frees_for_next_thread(cx: &Context) {
    let device = sized(cx, COVER_SIZE);
    for round in 0..5 {
        assert_eq!(thread(|| enable_freed(&device, KCOV_TRACE_PC)), Ok(()), "round {round}");
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
