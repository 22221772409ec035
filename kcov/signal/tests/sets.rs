//! Sets of signals, compared with the simplest possible sets.

use kcov::mode::TracePc;
use kcov::{Comparison, Pc, Trace};
use kcov_signal::{
    Dictionary, Edges, Merged, NoveltyMap, Operands, Ranges, RangesError, Repeats, UniqueSet,
    count_hits, edge,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64};

const TEXT: u64 = 0xffff_ffff_8100_0000;

fn ranges(ranges: impl IntoIterator<Item = Range<u64>>) -> Ranges {
    Ranges::new(ranges).unwrap()
}

fn text(bytes: u64) -> Ranges {
    Ranges::single(TEXT..TEXT + bytes).unwrap()
}

/// A buffer as a kernel leaves it.
fn buffer(pcs: &[u64]) -> Vec<AtomicU64> {
    [pcs.len() as u64].iter().chain(pcs).map(|word| AtomicU64::new(*word)).collect()
}

fn counts(merged: Merged) -> (usize, usize) {
    (merged.new, merged.unrecorded)
}

#[test]
fn nothing_is_known_until_it_is_merged() {
    let map = NoveltyMap::new(text(0x1000));
    assert!(!map.has_new(&[0u64; 0]) && map.is_empty());
    assert!(map.has_new(&[TEXT]) && !map.contains(TEXT));
    assert_eq!(counts(map.merge(&[TEXT, TEXT + 1, TEXT])), (2, 0));
    assert_eq!(counts(map.merge(&[TEXT, TEXT + 1, TEXT])), (0, 0));
    assert!(!map.has_new(&[TEXT + 1, TEXT]) && map.contains(TEXT));
    assert_eq!(map.len(), 2);
    map.clear();
    assert!(map.has_new(&[TEXT]) && map.is_empty() && map.iter().count() == 0);
}

#[test]
fn addresses_one_byte_apart_are_told_apart() {
    let map = NoveltyMap::new(text(0x1000));
    for known in 0..600 {
        assert!(map.has_new(&[TEXT + known]), "{known}");
        assert_eq!(map.merge(&[TEXT + known]).new, 1);
        assert!(!map.has_new(&[TEXT + known]));
        assert!(map.iter().eq(TEXT..=TEXT + known));
    }
}

#[test]
fn what_has_no_room_is_new_each_time_and_counted() {
    let map = NoveltyMap::with_fallback(text(0x1000), 2);
    assert_eq!(counts(map.merge(&[0, u64::MAX])), (2, 0));
    assert_eq!((map.fallback_capacity(), map.fallback_len()), (2, 2));
    let mut came = Vec::new();
    let merged = map.merge_with(&[5, 0, 5, TEXT, u64::MAX], |new| came.push(new));
    assert_eq!((counts(merged), came), ((1, 2), vec![5, 5, TEXT]));
    assert!(map.has_new(&[5]) && !map.has_new(&[0, u64::MAX, TEXT]));
    assert_eq!(map.iter().collect::<Vec<_>>(), [0, TEXT, u64::MAX]);
}

#[test]
fn a_byte_of_text_takes_one_bit() {
    let bytes = |ranges| 8 * NoveltyMap::words(&ranges, 0);
    assert_eq!(bytes(text(176 << 20)) - bytes(Ranges::default()), 22 << 20);
}

/// One new signal is found at any position, even if it differs from a known one only in bits that
/// the map's words do not hold.
#[test]
fn one_is_missed_nowhere() {
    const END: u64 = 0x1_1000;
    // The largest range comes second.
    let map = NoveltyMap::new(ranges([0x1000..END, 0x200..0x400]));
    let seen: Vec<u64> = [END - 512, END - 64].into_iter().chain(END - 5..END).collect();
    map.merge(&seen);
    let last = END - 1;
    let far =
        [last + 64, last + 512, last + (1 << 32), last + (1 << 38), last.wrapping_sub(1 << 32)];
    let new: Vec<u64> = [END - 6, END, 0x0fff, u64::MAX].into_iter().chain(far).collect();
    assert!(new.iter().all(|new| !map.contains(*new)));
    for len in [1, 8, 9, 24, 127, 136] {
        let mut signals: Vec<u64> = seen.iter().copied().cycle().take(len).collect();
        assert!(!map.has_new(&signals));
        for at in (0..len).step_by(if cfg!(miri) { 97 } else { 1 }) {
            let before = signals[at];
            for &new in &new {
                signals[at] = new;
                let mut found = Vec::new();
                map.for_each_new(&signals, |signal| found.push(signal));
                assert!(map.has_new(&signals) && found == [new], "{new:#x} at {at} of {len}");
            }
            signals[at] = before;
        }
    }
}

#[test]
fn ranges_that_make_no_sense_are_refused() {
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tried")]
    let reversed = 5..3;
    assert_eq!(Ranges::single(reversed.clone()), Err(RangesError::Reversed(reversed)));
    assert_eq!(Ranges::single(0..u64::MAX), Err(RangesError::TooLarge(u64::MAX - 63)));
    assert_eq!(
        Ranges::new([0..Ranges::MAX_BYTES, 1 << 40..(1 << 40) + 1]),
        Err(RangesError::TooLarge(Ranges::MAX_BYTES + 1))
    );
    assert!(Ranges::single(7..7).unwrap().is_empty());
    let joined = ranges([30..40, 10..20, 15..30, 50..60]);
    assert_eq!(joined.iter().collect::<Vec<_>>(), [10..40, 50..60]);
    // The last 64 bytes of the address space are in no range.
    let last = Ranges::single(u64::MAX - 600..u64::MAX).unwrap();
    assert!(last.contains(u64::MAX - 64) && !last.contains(u64::MAX - 63));
    let map = NoveltyMap::with_fallback(last, 1);
    assert_eq!(counts(map.merge(&[u64::MAX, u64::MAX - 1, u64::MAX - 64])), (2, 1));
}

/// Values from the formula in C, compiled separately.
#[test]
fn edges_are_syzkallers() {
    for (previous, pc, signal) in [
        (0, 0xffff_ffff_8100_0000, 0xffff_ffff_8100_096a),
        (0xffff_ffff_8100_0000, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_097a),
        (0xffff_ffff_8123_4567, 0xffff_ffff_89ab_cdef, 0xffff_ffff_89ab_c3da),
        (0xffff_ffff_c000_0fff, 0xffff_ffff_8100_0fff, 0xffff_ffff_8100_000c),
        (0xfff, 0, 0xff3),
        (0x12_3456, u64::MAX, 0xffff_ffff_ffff_f3dd),
    ] {
        assert_eq!(edge(Pc::new(previous), Pc::new(pc)), signal);
    }
}

#[test]
fn what_may_be_large_is_shown_by_its_size() {
    fn shown(value: &dyn std::fmt::Debug) -> String {
        let text = format!("{value:?}");
        assert!(text.len() < 500, "{} bytes: {}", text.len(), &text[..500]);
        text
    }
    let signals: Vec<u64> = (0..10_000).map(|signal| TEXT + signal * 32).collect();
    let many = ranges(signals.iter().map(|start| *start..start + 16));
    let map = NoveltyMap::new(many.clone());
    shown(&map);
    assert_eq!(map.merge(&signals).new, signals.len());
    map.merge(&[5, 6]);
    let text = "bytes: 160000, addresses: 0xffffffff81000000..0xffffffff8104e1f0";
    assert!(shown(&map).contains(text), "{map:?}");
    assert!(shown(&map).contains("len: 10002, fallback_len: 2"), "{map:?}");
    shown(&map.iter());
    shown(&Edges::new(&signals));
    let mut set = UniqueSet::new(signals.len());
    set.collect(&signals);
    shown(&set);
    let mut repeats = Repeats::new();
    repeats.add_run(&signals);
    shown(&repeats);
    let mut dictionary = Dictionary::new(signals.len());
    for signal in &signals {
        let record = Comparison::from_words([6, *signal, 1, 0]);
        dictionary.add(Operands::new(record));
    }
    shown(&dictionary);
}

#[test]
#[should_panic = "no set has room"]
fn no_set_has_room_for_everything() {
    let _ = UniqueSet::new(usize::MAX);
}

#[test]
fn a_set_is_of_one_execution() {
    let mut set = UniqueSet::new(3);
    assert_eq!(counts(set.collect(&[9, 0, 9, 4])), (3, 0));
    assert_eq!(counts(set.collect(&[9, 7, 7])), (0, 2));
    assert_eq!(set.as_slice(), [9, 0, 4]);
    assert_eq!(set.sort(), [0, 4, 9]);
    assert!(set.contains(4u64) && !set.contains(7u64));
    set.clear();
    assert!(set.is_empty() && !set.contains(4u64) && !set.contains(0u64));
    assert_eq!(set.collect(&[7]).new, 1);
}

/// A trace and slices of words and PCs give the same signals.
#[test]
fn all_sources_give_the_same_signals() {
    let pcs: Vec<u64> = (0..300).map(|i| 0x1000 + 16 * i).collect();
    let (buffer, typed): (_, Vec<Pc>) = (buffer(&pcs), pcs.iter().copied().map(Pc::new).collect());
    let trace = Trace::from_words(&buffer, TracePc);
    let narrow: Vec<AtomicU32> = pcs.iter().map(|pc| AtomicU32::new(*pc as u32)).collect();
    let mut set = UniqueSet::new(300);
    let mut given = |collect: &dyn Fn(&mut UniqueSet) -> Merged| {
        set.clear();
        assert_eq!(counts(collect(&mut set)), (300, 0));
        assert_eq!(set.as_slice(), pcs);
    };
    given(&|set| set.collect(trace));
    let borrowed: &Trace<'_, TracePc> = &trace;
    given(&|set| set.collect(borrowed));
    given(&|set| set.collect(&buffer[1..]));
    given(&|set| set.collect(&narrow[..]));
    given(&|set| set.collect(&pcs[..]));
    given(&|set| set.collect(&pcs));
    given(&|set| set.collect(&typed[..]));
    given(&|set| set.collect(&typed));
    let array: &[u64; 300] = pcs[..].try_into().unwrap();
    given(&|set| set.collect(array));
}

#[test]
fn hits_are_counted_into_any_map() {
    count_hits(&[1, 2, 3], &mut []);
    for len in [1, 2, 3, 1000, 65536] {
        let mut map = vec![0; len];
        count_hits(&[5, 5, 5], &mut map);
        assert_eq!(map.iter().map(|count| usize::from(*count)).sum::<usize>(), 3);
        assert_eq!(map.iter().filter(|count| **count == 3).count(), 1);
        count_hits(&vec![5; 1000], &mut map);
        assert_eq!(map.iter().max(), Some(&255));
    }
    // Neighbours in the kernel's text share bytes no more often than by chance.
    let pcs: Vec<u64> = (0..1000).map(|i| TEXT + 16 * i).collect();
    let mut map = vec![0; 65536];
    count_hits(&pcs, &mut map);
    assert!(map.iter().filter(|count| **count > 0).count() > 950);
}

/// Colliding addresses, addresses at word boundaries, and addresses outside.
fn signals() -> impl Strategy<Value = Vec<u64>> {
    let near = prop_oneof![
        4 => TEXT..TEXT + 2048,
        2 => (0u64..200).prop_map(|i| TEXT + 0x10_0000 + 37 * i),
        1 => (0u64..64).prop_map(|i| TEXT + 0x180_0000 - 32 + i),
        1 => (0u64..64).prop_map(|i| 0xffff_ffff_c000_0000 - 32 + i),
        1 => any::<u64>(),
        1 => Just(0u64),
        1 => Just(u64::MAX),
    ];
    prop::collection::vec(near, 0..if cfg!(miri) { 40 } else { 700 })
}

fn some_ranges() -> impl Strategy<Value = Vec<Range<u64>>> {
    let start = prop_oneof![
        Just(TEXT),
        TEXT..TEXT + 4096,
        Just(0xffff_ffff_c000_0000),
        Just(0),
        Just(u64::MAX - 5000)
    ];
    let bytes = prop_oneof![
        0u64..5000,
        Just(0x18_0000u64),
        Just(if cfg!(miri) { 77 } else { 0x180_0000 + 77 }),
    ];
    let range =
        (start, bytes).prop_map(|(start, bytes): (u64, u64)| start..start.saturating_add(bytes));
    prop::collection::vec(range, 0..4)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 4 } else { 128 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// For all ranges and traces, a map agrees with a set.
    #[test]
    fn maps_are_sets(given in some_ranges(), traces in prop::collection::vec(signals(), 1..4)) {
        let map = NoveltyMap::new(ranges(given));
        let mut set = BTreeSet::new();
        for trace in &traces {
            let buffer = buffer(trace);
            let live = Trace::from_words(&buffer, TracePc);
            let new: Vec<u64> = trace.iter().copied().filter(|pc| !set.contains(pc)).collect();
            prop_assert_eq!(map.has_new(live), !new.is_empty());
            let mut found = Vec::new();
            map.for_each_new(live, |pc| found.push(pc));
            prop_assert_eq!(&found, &new);

            let mut first = Vec::new();
            let merged = map.merge_with(live, |pc| first.push(pc));
            let mut once = Vec::new();
            trace.iter().for_each(|&pc| if set.insert(pc) { once.push(pc) });
            prop_assert_eq!(&first, &once);
            prop_assert_eq!(counts(merged), (once.len(), 0));
            prop_assert!(!map.has_new(trace) && !map.has_new(live));

        }
        prop_assert!(map.iter().eq(set.iter().copied()));
        prop_assert_eq!(map.len(), set.len());
        for pc in traces.concat() {
            for near in [pc.wrapping_sub(1), pc, pc.wrapping_add(1), pc ^ 512] {
                prop_assert_eq!(map.contains(near), set.contains(&near));
            }
        }
    }

    /// Every run is a set, and stable signals are in all of them.
    #[test]
    fn repeats_are_intersections(runs in prop::collection::vec(signals(), 0..5)) {
        let mut repeats = Repeats::new();
        repeats.add_run(&[3]);
        repeats.clear();
        runs.iter().for_each(|run| repeats.add_run(run));
        let sets: Vec<BTreeSet<u64>> =
            runs.iter().map(|run| run.iter().copied().collect()).collect();
        let all: BTreeSet<u64> = sets.iter().flatten().copied().collect();
        let (stable, noise): (Vec<u64>, Vec<u64>) =
            all.iter().partition(|signal| sets.iter().all(|set| set.contains(signal)));
        prop_assert_eq!(repeats.stable().collect::<Vec<_>>(), stable);
        prop_assert_eq!(repeats.noise().collect::<Vec<_>>(), noise);
        prop_assert_eq!(repeats.runs(), runs.len());
    }

    /// A live buffer and slices give the same signals, and edges continue across blocks.
    #[test]
    fn sources_agree(trace in signals()) {
        let mut edges = Vec::new();
        let mut previous = 0;
        for &pc in &trace {
            edges.push(edge(Pc::new(previous), Pc::new(pc)));
            previous = pc;
        }
        let mut set = BTreeSet::new();
        edges.retain(|edge| set.insert(*edge));
        let (mut live, mut owned) = (UniqueSet::new(2000), UniqueSet::new(2000));
        let buffer = buffer(&trace);
        live.collect(Edges::new(Trace::from_words(&buffer, TracePc)));
        let pcs: Vec<Pc> = trace.iter().copied().map(Pc::new).collect();
        owned.collect(Edges::new(&pcs));
        prop_assert_eq!(live.as_slice(), edges);
        prop_assert_eq!(live.as_slice(), owned.as_slice());
    }
}
