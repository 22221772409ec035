//! Program counters: behavior and promises that only Linux has.

pub(super) mod place;

use super::mapped;
use crate::check::{Context, checks};
use crate::checks::shared::full::{enabled_page, fill_up, is_filled};
use crate::checks::shared::pc::records;
use crate::checks::shared::{SENTINEL, fits, is_sentinel, mapped_of, mark};
use crate::raw::{KCOV_TRACE_PC, Loopback, call, page_words, symbols};
use place::in_none_of;

checks! {
    "pc.full.stored-count-of-all-ones": stored_count_of_all_ones,
    "pc.full.last-record-is-kernel-code": last_record_is_kernel_code,
    "pc.full.large-buffer-is-filled": large_buffer_is_filled,
    "pc.soft.interrupts-add-nothing": interrupts_add_nothing,
}

fn stored_count_of_all_ones(cx: &Context) {
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    mark(&map, SENTINEL);
    let ones = if fits(u64::MAX) { u64::MAX } else { u32::MAX.into() };
    map.store(0, ones);
    call();
    let count = map.count();
    assert!(count >= page_words() && count != ones, "word 0 holds no record: {count:#x}");
    assert!(map.copy(1, map.words() - 1).iter().all(is_sentinel));
}

fn last_record_is_kernel_code(cx: &Context) {
    let text = symbols().text();
    let (_device, map) = enabled_page(cx, KCOV_TRACE_PC);
    map.reset();
    fill_up(&map);
    for word in 1..map.words() {
        let record = map.load(word);
        assert!(text.contains(&record), "word {word} is {record:#x}, not in {text:#x?}");
    }
}

fn large_buffer_is_filled(cx: &Context) {
    let (device, map) = mapped_of(cx, 2 << 20);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    is_filled(&map);
    assert_ne!(map.load(map.words() - 1), 0, "the last word holds a record");
}

/// Functions that deliver a datagram.
pub(super) const DELIVERY: &[&str] = &["ip_rcv", "process_backlog", "udp_rcv"];

fn interrupts_add_nothing(cx: &Context) {
    let loopback = Loopback::up();
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let records = records(&map, || (0..20).for_each(|_| loopback.turn()));
    device.disable().expect("disabled");
    assert!(symbols().any_in("udp_sendmsg", &records), "what sends is the thread's own");
    in_none_of(DELIVERY, &records);
}
