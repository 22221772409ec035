//! What a fuzzer does with traces, against the plainest sets that there are.

use kcov::mode::TracePc;
use kcov::signal::{
    CmpFilter, Dictionary, Edges, Merged, NoveltyMap, Operands, PcFilter, Ranges, RangesError,
    UniqueSet, classify, count_hits, edge,
};
use kcov::{Comparison, Pc, Trace};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::AtomicU64;

const TEXT: u64 = 0xffff_ffff_8100_0000;

fn ranges(ranges: impl IntoIterator<Item = Range<u64>>) -> Ranges {
    Ranges::new(ranges).unwrap()
}

fn text(bytes: u64) -> Ranges {
    Ranges::single(TEXT..TEXT + bytes).unwrap()
}

/// A buffer as the kernel leaves it.
fn buffer(pcs: &[u64]) -> Vec<AtomicU64> {
    [pcs.len() as u64].iter().chain(pcs).map(|word| AtomicU64::new(*word)).collect()
}

#[test]
fn nothing_is_known_until_it_is_merged() {
    let mut map = NoveltyMap::new(text(0x1000));
    assert!(!map.has_new(&[0u64; 0]) && map.is_empty());
    assert!(map.has_new(&[TEXT]) && !map.contains(TEXT));
    assert_eq!(map.merge(&[TEXT, TEXT + 1, TEXT]), Merged { new: 2, unrecorded: 0 });
    assert_eq!(map.merge(&[TEXT, TEXT + 1, TEXT]), Merged::default());
    assert!(!map.has_new(&[TEXT + 1, TEXT]) && map.contains(Pc::new(TEXT)));
    assert_eq!(map.len(), 2);
    map.clear();
    assert!(map.has_new(&[TEXT]) && map.is_empty() && map.iter().count() == 0);
}

#[test]
fn addresses_one_byte_apart_are_told_apart() {
    for bytes in [0x1000, 64 << 20] {
        let mut map = NoveltyMap::new(text(bytes));
        // In one place up to all that fits.
        for known in 0..600 {
            assert!(map.has_new(&[TEXT + known]), "{known}");
            assert_eq!(map.merge(&[TEXT + known]).new, 1);
            assert!(!map.has_new(&[TEXT + known]));
            assert!(map.iter().eq(TEXT..=TEXT + known));
        }
    }
}

#[test]
fn what_has_no_room_is_new_each_time_and_counted() {
    let mut map = NoveltyMap::with_fallback(text(0x1000), 2);
    assert_eq!(map.merge(&[0, u64::MAX]), Merged { new: 2, unrecorded: 0 });
    assert_eq!(map.fallback(), (2, 2));
    let mut came = Vec::new();
    let merged = map.merge_with(&[5, 0, 5, TEXT, u64::MAX], |new| came.push(new));
    assert_eq!((merged, came), (Merged { new: 1, unrecorded: 2 }, vec![5, 5, TEXT]));
    assert!(map.has_new(&[5]) && !map.has_new(&[0, u64::MAX, TEXT]));
    assert_eq!(map.iter().collect::<Vec<_>>(), [0, TEXT, u64::MAX]);
}

#[test]
fn a_large_text_takes_three_mebibytes() {
    let map = NoveltyMap::new(text(176 * 1_000_000));
    assert!(map.bytes().0 <= 3 << 20, "{:?}", map.bytes());
    let map = NoveltyMap::new(text(176 << 20));
    assert!(map.bytes().0 <= 3 << 20, "{:?}", map.bytes());
}

#[test]
fn ranges_that_make_no_sense_are_refused() {
    #[expect(clippy::reversed_empty_ranges, reason = "that is what is tried")]
    let reversed = 5..3;
    assert_eq!(Ranges::single(reversed.clone()), Err(RangesError::Reversed(reversed)));
    assert_eq!(Ranges::single(0..u64::MAX), Err(RangesError::TooLarge(u64::MAX)));
    assert_eq!(
        Ranges::new([0..Ranges::MAX_BYTES, u64::MAX - 1..u64::MAX]),
        Err(RangesError::TooLarge(Ranges::MAX_BYTES + 1))
    );
    assert!(Ranges::single(7..7).unwrap().is_empty());
    let joined = ranges([30..40, 10..20, 15..30, 50..60]);
    assert_eq!(joined.iter().collect::<Vec<_>>(), [10..40, 50..60]);
    // The last byte of the address space has no exclusive end.
    let mut map = NoveltyMap::new(Ranges::single(u64::MAX - 1..u64::MAX).unwrap());
    assert_eq!(map.merge(&[u64::MAX, u64::MAX - 1, u64::MAX]).new, 2);
}

/// The formula in C, compiled apart from this crate, gave these.
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
fn filters_admit_what_is_allowed_and_not_denied() {
    let pcs: Vec<u64> = (0..1000).collect();
    let filter = PcFilter::new();
    assert!(pcs.iter().all(|pc| filter.admits(Pc::new(*pc))));
    let filter = filter.allow(ranges([10..20, 500..600])).deny(Ranges::single(15..17).unwrap());
    let mut set = UniqueSet::new(1000);
    set.collect(filter.of(&pcs));
    let expected: Vec<u64> = (10..15).chain(17..20).chain(500..600).collect();
    assert_eq!(set.as_slice(), expected);
    // An edge stays if one of its ends is admitted; the first PC comes from an admitted place.
    let filter = PcFilter::new().allow(Ranges::single(0x2000..0x3000).unwrap());
    set.restart();
    set.collect(Edges::filtered(&[0x1000, 0x1001, 0x2000, 0x1002, 0x1003], &filter));
    let step = |from, to| edge(Pc::new(from), Pc::new(to));
    assert_eq!(set.as_slice(), [step(0, 0x1000), step(0x1001, 0x2000), step(0x2000, 0x1002)]);
}

#[test]
fn a_set_is_of_one_execution() {
    let mut set = UniqueSet::new(3);
    assert_eq!(set.collect(&[9, 0, 9, 4]), Merged { new: 3, unrecorded: 0 });
    assert_eq!(set.collect(&[9, 7, 7]), Merged { new: 0, unrecorded: 2 });
    assert_eq!(set.as_slice(), [9, 0, 4]);
    assert_eq!(set.sort(), [0, 4, 9]);
    assert!(set.contains(4u64) && !set.contains(7u64));
    set.restart();
    assert!(set.is_empty() && !set.contains(4u64) && !set.contains(0u64));
    assert_eq!(set.collect(&[7]).new, 1);
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
    // Neighbours in a kernel's text do not share bytes more than chance would have it.
    let pcs: Vec<u64> = (0..1000).map(|i| TEXT + 16 * i).collect();
    let mut map = vec![0; 65536];
    count_hits(&pcs, &mut map);
    assert!(map.iter().filter(|count| **count > 0).count() > 950);
}

#[test]
fn counts_are_classed_as_afl_does() {
    let mut map: Vec<u8> = (0..=255).collect();
    classify(&mut map);
    for (count, class) in map.into_iter().enumerate() {
        let expected = match count {
            0..=2 => count,
            3 => 4,
            4..=7 => 8,
            8..=15 => 16,
            16..=31 => 32,
            32..=127 => 64,
            _ => 128,
        };
        assert_eq!(usize::from(class), expected, "{count}");
    }
}

fn comparison(kind: u64, first: u64, second: u64) -> Comparison {
    Comparison::from_words([kind, first, second, TEXT])
}

#[test]
fn operands_are_cut_and_extended_by_size() {
    // A case of -2 in a switch over a byte, stored sign-extended.
    let operands = Operands::new(comparison(1, u64::MAX - 1, 0x7f));
    assert_eq!((operands.unsigned(), operands.signed()), ((0xfe, 0x7f), (-2, 0x7f)));
    assert_eq!((operands.size(), operands.is_const()), (1, true));
    let operands = Operands::new(comparison(4, 0x8000_0000, 0x1_0000_0001));
    assert_eq!((operands.unsigned(), operands.signed()), ((1 << 31, 1), (i32::MIN.into(), 1)));
    let operands = Operands::new(comparison(6, u64::MAX, 5));
    assert_eq!((operands.unsigned(), operands.signed()), ((u64::MAX, 5), (-1, 5)));
}

#[test]
fn each_kind_of_noise_is_left_out_by_its_option() {
    let records = [
        comparison(1, 7, 7),
        comparison(1, 0x1ff, 0xff),
        comparison(4, 0, 100),
        comparison(4, 100, 0),
        comparison(5, 3, 100),
        comparison(5, 0xffff_ffff, 100),
        comparison(7, 1000, 5),
        comparison(6, 1000, 5),
    ];
    let left = |filter: CmpFilter| {
        let left: Vec<Operands> = filter.of(records).collect();
        records.map(|record| left.contains(&Operands::new(record)))
    };
    let (t, f) = (true, false);
    assert_eq!(left(CmpFilter::new()), [t; 8]);
    assert_eq!(left(CmpFilter::new().skip_equal()), [f, f, t, t, t, t, t, t]);
    assert_eq!(left(CmpFilter::new().skip_zero()), [t, t, f, f, t, t, t, t]);
    assert_eq!(left(CmpFilter::new().skip_small(3)), [t, f, t, t, f, f, t, t]);
    assert_eq!(left(CmpFilter::new().only_const()), [t, t, f, f, t, t, t, f]);
}

#[test]
fn a_dictionary_has_both_orders_of_bytes_and_a_limit() {
    let mut dictionary = Dictionary::new(4);
    let mut add =
        |kind, first, second| dictionary.add(Operands::new(comparison(kind, first, second)));
    assert!(add(3, 0x1234, 0x9999));
    assert!(!add(3, 0x1234, 0x8888));
    assert!(add(5, 0x0a0b_0c0d, 1));
    assert!(add(2, 0x7777, 0x1234), "one is new");
    assert!(add(1, 0x55, 0));
    assert!(!add(7, 1, 2));
    assert_eq!((dictionary.len(), dictionary.missed()), (4, 1));
    let entries: Vec<Vec<u8>> = dictionary.entries().map(|e| e.as_bytes().to_vec()).collect();
    let expected: [&[u8]; 6] = [
        &[0x55],
        &[0x34, 0x12],
        &[0x12, 0x34],
        &[0x77, 0x77],
        &[0x0d, 0x0c, 0x0b, 0x0a],
        &[0x0a, 0x0b, 0x0c, 0x0d],
    ];
    assert_eq!(entries, expected);
}

/// Addresses that meet each other, the borders of cells, and what is outside.
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
    // Larger ones take the other form of map.
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

    /// Whatever the ranges and traces, a map answers as a set does.
    #[test]
    fn maps_are_sets(given in some_ranges(), traces in prop::collection::vec(signals(), 1..4)) {
        let mut map = NoveltyMap::new(ranges(given.clone()));
        let mut other = NoveltyMap::new(ranges(given));
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
            other.clear();
            other.merge(trace);
            let expected = map.clone();
            let merged = map.merge_with(live, |pc| first.push(pc));
            let mut once = Vec::new();
            trace.iter().for_each(|&pc| if set.insert(pc) { once.push(pc) });
            prop_assert_eq!(&first, &once);
            prop_assert_eq!(merged, Merged { new: once.len(), unrecorded: 0 });
            prop_assert!(!map.has_new(trace) && !map.has_new(live));

            once.sort_unstable();
            prop_assert_eq!(other.difference(&expected).collect::<Vec<_>>(), once.clone());
            let mut joined = expected;
            prop_assert_eq!(joined.merge_map(&other).new, once.len());
            prop_assert!(joined.iter().eq(map.iter()) && joined.len() == map.len());
            let mut elsewhere = NoveltyMap::new(Ranges::default());
            elsewhere.merge_map(&map);
            prop_assert!(elsewhere.iter().eq(map.iter()));
        }
        prop_assert!(map.iter().eq(set.iter().copied()));
        prop_assert_eq!(map.len(), set.len());
        for pc in traces.concat() {
            for near in [pc.wrapping_sub(1), pc, pc.wrapping_add(1), pc ^ 512] {
                prop_assert_eq!(map.contains(near), set.contains(&near));
            }
        }
    }

    /// Signals are the same from a live buffer and from slices, and edges are edges across blocks.
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
