//! Program counters: what is recorded, and where.

use super::workload::WORKLOAD;
use super::{SENTINEL, is_sentinel, mapped, mark, other_stays_traced};
use crate::check::{Context, checks};
use crate::raw::{KCOV_TRACE_PC, Map, at_times, call, settled, sites, thread};
use crate::system::checks::calls::seek_nowhere;
use std::collections::{BTreeSet, HashMap};

checks! {
    "pc.single-call": single_call,
    "pc.tail-of-enable-is-recorded": tail_of_enable_is_recorded,
    "pc.head-of-disable-is-recorded": head_of_disable_is_recorded,
    "pc.storing-zero-starts-over": storing_zero_starts_over,
    "pc.count-is-word-zero": count_is_word_zero,
    "pc.records-follow-the-count": records_follow_the_count,
    "pc.records-are-return-addresses": records_are_return_addresses,
    "pc.words-behind-the-count-are-untouched": words_behind_the_count_are_untouched,
    "pc.same-call-same-records": same_call_same_records,
    "pc.other-call-other-records": other_call_other_records,
    "pc.nothing-while-blocked": nothing_while_blocked,
}

/// The records of one call.
pub(crate) fn records(map: &Map, traced: impl Fn()) -> Vec<u64> {
    map.reset();
    traced();
    let count = super::index(map.count());
    assert!(count < map.words(), "the buffer has room");
    map.copy(1, count)
}

/// The buffer after one call and the disable request. All other words still have the sentinel.
fn marked(cx: &Context) -> Map {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    mark(&map, SENTINEL);
    map.reset();
    call();
    device.disable().expect("disabled");
    map
}

fn single_call(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert!(!records(&map, call).is_empty());
    assert!(at_times(|| records(&map, || ()).is_empty()), "without a call there is nothing");
}

fn tail_of_enable_is_recorded(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    assert!(map.count() > 0);
}

fn head_of_disable_is_recorded(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    map.reset();
    device.disable().expect("disabled");
    assert!(map.count() > 0);
}

fn storing_zero_starts_over(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    for _ in 0..100 {
        call();
    }
    let many = map.count();
    let has_fewer = || {
        mark(&map, SENTINEL);
        let records = records(&map, call);
        assert!(!records.is_empty(), "a call is recorded");
        assert!(!records.iter().any(is_sentinel), "records begin again at word 1");
        (records.len() as u64) < many
    };
    // A preempted call can leave many records.
    assert!(at_times(has_fewer));
}

fn count_is_word_zero(cx: &Context) {
    let map = marked(cx);
    let count = super::index(map.count());
    let written = (1..map.words()).take_while(|&word| !is_sentinel(&map.load(word))).count();
    assert_eq!(written, count);
}

fn records_follow_the_count(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    // Each record is a kernel address: none is null, and all are close together.
    let records = records(&map, call);
    let least = *records.iter().min().expect("a record");
    let greatest = *records.iter().max().expect("a record");
    assert!(least >= 4096, "{least:#x}");
    assert!(greatest - least < 1 << 30, "{least:#x} to {greatest:#x}");
}

fn records_are_return_addresses(cx: &Context) {
    let blocks = sites().blocks();
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let mut seen = BTreeSet::new();
    for traced in WORKLOAD {
        seen.extend(records(&map, traced));
    }
    device.disable().expect("disabled");
    let others: Vec<_> = seen.iter().filter(|record| !blocks.contains(record)).collect();
    assert!(others.is_empty(), "behind no call of the hook: {others:#x?}, of {}", seen.len());
    assert!(seen.len() > 500, "only {} places show little", seen.len());
}

fn words_behind_the_count_are_untouched(cx: &Context) {
    let map = marked(cx);
    let count = super::index(map.count());
    assert!(count > 0);
    let behind = map.copy(1 + count, map.words() - 1 - count);
    assert!(behind.iter().all(is_sentinel));
}

fn same_call_same_records(cx: &Context) {
    const ROUNDS: usize = 64;
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let mut seen: HashMap<Vec<u64>, usize> = HashMap::new();
    for _ in 0..ROUNDS {
        *seen.entry(records(&map, call)).or_default() += 1;
    }
    // "More or less": an interrupt may add records to some rounds.
    let (usual, times) = seen.iter().max_by_key(|(_, times)| **times).expect("rounds");
    assert!(
        *times >= ROUNDS / 2,
        "the most frequent of {} outcomes came {times} times",
        seen.len()
    );
    assert!(!usual.is_empty());
}

fn other_call_other_records(cx: &Context) {
    let (device, map) = mapped(cx);
    device.enable(KCOV_TRACE_PC).expect("enabled");
    let set = |traced: fn()| records(&map, traced).into_iter().collect::<BTreeSet<_>>();
    let (read, seek) = (set(call), set(seek_nowhere));
    assert!(read.difference(&seek).next().is_some(), "read has records of its own");
    assert!(seek.difference(&read).next().is_some(), "lseek has records of its own");
}

fn nothing_while_blocked(cx: &Context) {
    let (device, map) = mapped(cx);
    let asleep = || {
        let before = settled(&map);
        assert!(before > 0, "it was traced before it blocked");
        // If the buffer were full, it would hide records that others add.
        assert!(super::index(before) < map.words() - 1, "others have filled its buffer");
        // Other threads start, make a call and end meanwhile.
        (0..100).for_each(|_| thread(call));
        assert_eq!(map.count(), before, "a thread that sleeps has added something");
    };
    other_stays_traced(&map, || device.enable(KCOV_TRACE_PC), asleep);
}
