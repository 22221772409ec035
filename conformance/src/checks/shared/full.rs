//! A one-page buffer, its end, and counts stored by user space. The same for both modes.

use super::{SENTINEL, index, is_sentinel, mapped_page, mark};
use crate::check::Context;
use crate::raw::{Device, Map, call};

/// Returns a device with a mapped one-page buffer, enabled in this mode.
pub(crate) fn enabled_page(cx: &Context, mode: u32) -> (Device, Map) {
    let (device, map) = mapped_page(cx);
    device.enable(mode).expect("enabled");
    (device, map)
}

/// Makes calls until the count stops growing.
pub(crate) fn fill_up(map: &Map) {
    let mut last = u64::MAX;
    for _ in 0..map.words() * 2 {
        call();
        if map.count() == last {
            return;
        }
        last = map.count();
    }
    panic!("the count grows for ever: {last}");
}

/// Asserts that this thread's calls fill the buffer to its last word.
#[track_caller]
pub(crate) fn is_filled(map: &Map) {
    map.store(0, map.words() as u64 - 2);
    call();
    assert_eq!(map.count(), map.words() as u64 - 1);
}

/// Asserts that a full buffer keeps every word.
pub(crate) fn keeps_its_records(map: &Map) {
    fill_up(map);
    let full = map.copy(0, map.words());
    for _ in 0..100 {
        call();
    }
    assert_eq!(map.copy(0, map.words()), full);
}

/// Asserts that the next record follows `stored` records of this many words each.
#[track_caller]
pub(crate) fn next_follows_stored_count(map: &Map, stored: u64, words: u64) {
    mark(map, SENTINEL);
    map.store(0, stored);
    call();
    let count = map.count();
    assert!(count > stored);
    let (before, new) = (index(words * stored), index(words * (count - stored)));
    assert!(map.copy(1, before).iter().all(is_sentinel), "before it");
    assert!(!map.copy(1 + before, new).iter().any(is_sentinel), "from it on");
}

/// Asserts that a call changes nothing if this is the count.
pub(crate) fn nothing_is_written(map: &Map, count: u64) {
    mark(map, SENTINEL);
    map.store(0, count);
    call();
    assert_eq!(map.count(), count);
    assert!(map.copy(1, map.words() - 1).iter().all(is_sentinel), "{count:#x}");
}
