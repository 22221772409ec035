//! The end of the buffer in comparison mode, and counts stored by user space.

use crate::check::{Context, checks};
use crate::checks::shared::full::{enabled_page, fill_up, nothing_is_written};
use crate::checks::shared::index;
use crate::raw::{KCOV_TRACE_CMP, call, page_words};
use crate::system::checks::sized;

checks! {
    "cmp.full.last-record-is-whole": last_record_is_whole,
    "cmp.full.buffer-without-room-is-accepted": buffer_without_room_is_accepted,
    "cmp.full.stored-count-beyond-capacity": stored_count_beyond_capacity,
}

fn last_record_is_whole(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    fill_up(&map);
    let last = map.copy(1 + (index(map.count()) - 1) * 4, 4);
    // As in every record, the first word is a type and the last one an address.
    assert!(last[0] < 8 && last[3] >= 4096, "{last:#x?}");
}

fn stored_count_beyond_capacity(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_CMP);
    // After each of the last three counts, the next record's end wraps to a small offset.
    for count in [page_words(), 1 << 32, 1 << 62, (1 << 59) - 1, u64::MAX] {
        nothing_is_written(&map, count);
    }
}

fn buffer_without_room_is_accepted(cx: &Context) {
    for words in 2..5 {
        let device = sized(cx, words);
        assert_eq!(device.enable(KCOV_TRACE_CMP), Ok(()), "{words} words");
        call();
        assert_eq!(device.disable(), Ok(()), "{words} words");
    }
}
