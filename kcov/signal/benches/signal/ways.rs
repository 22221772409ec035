//! The ways to look at a trace, over one case, side by side.

use crate::peers::{ByteMap, FxDedup, FxGlobal, Peer, SortDedup, StdGlobal, Syzkaller, Trinity};
use kcov::Trace;
use kcov::mode::TracePc;
use kcov::signal::{Edges, NoveltyMap, Ranges, SharedMap, UniqueSet, count_hits};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;

/// A trace to look at, and what was seen before it.
pub struct Case {
    pub name: String,
    pub ranges: Ranges,
    pub known: Vec<u64>,
    pub trace: Vec<u64>,
}

/// A way to look at it: what it is called, and the work.
pub type Way<'c> = (&'static str, Box<dyn FnMut() + 'c>);

/// Prepares all ways over a case and lends them, with the map that was taught what is known.
pub fn with(case: &Case, take: impl FnOnce(&NoveltyMap, &mut [Way<'_>])) {
    let mut map = NoveltyMap::new(case.ranges.clone());
    map.merge(&case.known);
    let mut edges = NoveltyMap::new(pages(&case.ranges));
    edges.merge(Edges::new(&case.trace));
    let memory: Vec<AtomicU64> =
        (0..SharedMap::words(&case.ranges, 0)).map(|_| AtomicU64::new(0)).collect();
    let shared = SharedMap::new(&memory, &case.ranges, 0).expect("fresh memory of its size");
    shared.merge(&case.known);
    let mut set = UniqueSet::new(case.trace.len());
    let mut bytes = vec![0; 65536];
    let count = AtomicU64::new(case.trace.len() as u64);
    let buffer: Vec<AtomicU64> =
        [count].into_iter().chain(case.trace.iter().copied().map(AtomicU64::new)).collect();
    let live = || Trace::from_words(black_box(&buffer), TracePc);
    let trace = || black_box(case.trace.as_slice());
    let mut copy = vec![0; case.trace.len()];

    let mut peers: Vec<Box<dyn Peer>> = vec![
        Box::new(Syzkaller::new(false)),
        Box::new(Syzkaller::new(true)),
        Box::new(Trinity::new()),
        Box::new(FxGlobal::default()),
        Box::new(FxDedup::default()),
        Box::new(StdGlobal::default()),
        Box::new(SortDedup::default()),
        Box::new(ByteMap::new()),
    ];
    let mut ways: Vec<Way<'_>> = vec![
        (
            "floor: sum of all words",
            Box::new(|| {
                black_box(trace().iter().fold(0u64, |sum, pc| sum.wrapping_add(*pc)));
            }),
        ),
        (
            "copy out",
            Box::new(|| {
                copy.copy_from_slice(trace());
                black_box(&copy);
            }),
        ),
        (
            "kcov: anything new? live",
            Box::new(|| {
                black_box(map.has_new(live()));
            }),
        ),
        (
            "kcov: anything new? owned",
            Box::new(|| {
                black_box(map.has_new(trace()));
            }),
        ),
        (
            "kcov: which are new? live",
            Box::new(|| {
                map.for_each_new(live(), |pc| {
                    black_box(pc);
                });
            }),
        ),
        (
            "kcov: new edges? live",
            Box::new(|| {
                black_box(edges.has_new(Edges::new(live())));
            }),
        ),
        (
            "kcov: anything new? shared map",
            Box::new(|| {
                black_box(shared.has_new(live()));
            }),
        ),
        (
            "kcov: unique set",
            Box::new(|| {
                set.restart();
                black_box(set.collect(live()));
            }),
        ),
        (
            "kcov: hit counts, 64 KiB",
            Box::new(|| {
                bytes.fill(0);
                count_hits(live(), &mut bytes);
                black_box(&bytes);
            }),
        ),
    ];
    for peer in &mut peers {
        peer.learn(&case.known);
        let name = peer.name();
        ways.push((
            name,
            Box::new(move || {
                black_box(peer.count_new(black_box(&case.trace)));
            }),
        ));
    }
    take(&map, &mut ways);
}

/// Widened to whole pages, in which an edge stays.
fn pages(ranges: &Ranges) -> Ranges {
    let pages = ranges.iter().map(|range| range.start & !0xfff..range.end.next_multiple_of(4096));
    Ranges::new(pages).expect("a page more")
}
