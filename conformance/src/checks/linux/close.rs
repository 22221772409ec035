//! Descriptors: closing, duplicating and passing them on.

use super::{COVER_SIZE, mapped, sized};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, call, thread};

checks! {
    while_enabled_ends_with_the_thread,
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
    let next = sized(cx, COVER_SIZE);
    assert_eq!(next.enable(KCOV_TRACE_PC), Ok(()));
}
