//! Unique modes: "Introduce New Unique PC|EDGE|CMP Modes".

use super::*;
use kcov_sys::linux::proposed::{
    KCOV_TRACE_UNIQ_CMP, KCOV_TRACE_UNIQ_EDGE, KCOV_TRACE_UNIQ_PC, kcov_uniq_edge,
};

const BOTH: u32 = KCOV_TRACE_UNIQ_PC | KCOV_TRACE_UNIQ_EDGE;

/// Returns a device with mappings of both areas.
fn areas(cx: &Context) -> (Device, Map, Map) {
    let (device, pcs) = mapped(cx);
    let edges = device.map_edges(COVER_SIZE).expect("a second area");
    (device, pcs, edges)
}

/// The records of the calls in both areas, including those of the enabling request. The kernel
/// would not repeat the latter, so this resets nothing.
fn recorded(cx: &Context, mode: u32) -> (Vec<u64>, Vec<u64>) {
    let (device, pcs, edges) = areas(cx);
    device.enable(mode).expect("enabled");
    calls();
    let records = (records_of(&pcs), records_of(&edges));
    device.disable().expect("disabled");
    records
}

pub(crate) const CHECKS: &[Check] = &[
    check("proposed.uniq.each-pc-once", |cx| {
        let (_device, map) = collecting(cx, KCOV_TRACE_UNIQ_PC);
        map.reset();
        call_repeatedly(100);
        assert_once(&records_of(&map));
    }),
    check("proposed.uniq.same-pcs-as-plain-mode", |cx| {
        let in_mode = |mode: u32| Seen::in_runs(|| recorded(cx, mode).0);
        in_mode(KCOV_TRACE_PC).assert_same(&in_mode(KCOV_TRACE_UNIQ_PC));
    }),
    check("proposed.uniq.edges-have-their-own-area", |cx| {
        let (device, pcs, edges) = areas(cx);
        device.enable(KCOV_TRACE_UNIQ_EDGE).expect("enabled");
        call();
        device.disable().expect("disabled");
        assert!(edges.count() > 0);
        assert!(is_zero(&pcs), "the first is untouched");
    }),
    check("proposed.uniq.each-edge-once", |cx| {
        let (device, _pcs, edges) = areas(cx);
        device.enable(KCOV_TRACE_UNIQ_EDGE).expect("enabled");
        edges.reset();
        call_repeatedly(100);
        assert_once(&records_of(&edges));
    }),
    check("proposed.uniq.edges-are-hashed-pairs", |cx| {
        let computed = || {
            let (pcs, _) = recorded(cx, KCOV_TRACE_PC);
            let before = std::iter::once(&0).chain(&pcs);
            before.zip(&pcs).map(|(&previous, &pc)| kcov_uniq_edge(previous, pc)).collect()
        };
        let edges = || recorded(cx, KCOV_TRACE_UNIQ_EDGE).1;
        Seen::in_runs(computed).assert_same(&Seen::in_runs(edges));
    }),
    check("proposed.uniq.pcs-and-edges-together", |cx| {
        let both = || {
            let (pcs, edges) = recorded(cx, BOTH);
            assert_once(&pcs);
            assert_once(&edges);
            (pcs, edges)
        };
        let pcs = Seen::in_runs(|| recorded(cx, KCOV_TRACE_UNIQ_PC).0);
        pcs.assert_same(&Seen::in_runs(|| both().0));
        let edges = Seen::in_runs(|| recorded(cx, KCOV_TRACE_UNIQ_EDGE).1);
        edges.assert_same(&Seen::in_runs(|| both().1));
    }),
    check("proposed.uniq.each-comparison-once", |cx| {
        let (_device, map) = collecting(cx, KCOV_TRACE_UNIQ_CMP);
        map.reset();
        for _ in 0..50 {
            compare_argument(MAGIC);
            call();
        }
        let words = map.copy(1, 4 * index(map.count()));
        let records: Vec<_> = words.chunks_exact(4).collect();
        assert_once(&records);
        let magic = u64::from(MAGIC);
        assert!(records.iter().any(|record| record[1..3].contains(&magic)), "{records:x?}");
        assert!(records.iter().all(|record| record[0] < 8), "{records:x?}");
    }),
    check("proposed.uniq.other-bits-do-not-count", |cx| {
        for mode in [3, 10, 2 | 16] {
            let (device, pcs, edges) = areas(cx);
            assert_eq!(device.enable(mode as u32), Ok(()), "mode {mode}");
            call();
            device.disable().expect("disabled");
            assert!(edges.count() == 0, "mode {mode} is not that of edges");
            assert_once(&records_of(&pcs));
            let first = pcs.load(1);
            assert!(first >= 4096, "mode {mode} is that of program counters, not {first:#x}");
        }
    }),
    on_device("proposed.uniq.comparison-bit-counts-alone", usual, |cx, device| {
        cx.refused(device.enable(KCOV_TRACE_UNIQ_CMP | 1));
    }),
    on_device("proposed.uniq.no-known-bit-is-refused", usual, |cx, device| {
        for mode in [16, 24, 1 << 30, !7_u32] {
            cx.refused(device.enable(mode));
        }
    }),
    check("proposed.uniq.storing-zero-makes-room", |cx| {
        let (device, pcs, edges) = areas(cx);
        device.enable(BOTH).expect("enabled");
        call();
        let before = [&pcs, &edges].map(|map| {
            let records = records_of(map);
            assert!(!records.is_empty());
            map.reset();
            records
        });
        seek_nowhere();
        for (map, before) in [&pcs, &edges].into_iter().zip(before) {
            let records = records_of(map);
            assert_once(&records);
            assert!(!records.contains(&before[0]), "the count starts over");
        }
    }),
    on_buffer("proposed.uniq.recorded-is-remembered", mapped, |cx, device, map| {
        let mut earlier = Vec::new();
        for _ in 0..2 {
            device.enable(KCOV_TRACE_UNIQ_PC).expect("enabled");
            (0..50).for_each(|_| call());
            let first = records_of(&map);
            assert!(!earlier.iter().any(|pc| first.contains(pc)), "{first:x?} after {earlier:x?}");
            let nothing = || {
                map.reset();
                call();
                map.count() == 0
            };
            assert!(at_times(nothing), "{} were recorded before", first.len());
            device.disable().expect("disabled");
            map.reset();
            earlier = first;
        }
        let fresh = plain(cx);
        assert!(!fresh.is_empty(), "another device does not remember");
    }),
    on_device("proposed.uniq.area-of-edges-is-at-the-size", two_pages, |_, device| {
        let first = device.map(2 * page_words()).expect("the first area");
        let second = device.map_edges(2 * page_words()).expect("the second area");
        second.store(5, 7);
        assert_eq!((first.load(5), second.load(5)), (0, 7), "it is another one");
        let again = device.map_edges(2 * page_words()).expect("the second area again");
        assert_eq!(again.load(5), 7);
    }),
    on_device("proposed.uniq.other-offset-is-refused", two_pages, |cx, device| {
        for (pages, offset) in [(2, 1), (2, 3), (2, 4), (1, 1), (1, 2), (4, 0)] {
            let offset = i64::try_from(offset * page_size()).expect("an offset");
            let length = pages * page_size();
            cx.refused(device.map_with(length, offset, READ_WRITE, MAP_SHARED));
        }
    }),
    check("proposed.uniq.full-area-stays-full", |cx| {
        let (_device, map) = enabled_page(cx, KCOV_TRACE_UNIQ_PC);
        // Fills the area with program counters that are new to it.
        map.store(0, page_words() - 2);
        let _ = std::fs::read_to_string("/proc/self/maps").expect("a file");
        assert_eq!(map.count(), page_words() - 1);
        assert_ne!(map.load(index(page_words() - 1)), 0);
    }),
    check("proposed.uniq.plain-mode-is-as-ever", |cx| {
        let (device, pcs, edges) = areas(cx);
        device.enable(KCOV_TRACE_PC).expect("enabled");
        pcs.reset();
        (0..3).for_each(|_| call());
        let records = records_of(&pcs);
        let distinct: BTreeSet<_> = records.iter().collect();
        assert!(records.len() >= 2 * distinct.len(), "{} of {}", distinct.len(), records.len());
        assert_eq!(edges.count(), 0);
    }),
];
