//! What it costs to find out whether a trace has something new, in one process with what peers do:
//! `cargo bench -p kcov --bench signal`, or with part of a trace's name after `--`.
//!
//! Each figure is the best of some rounds, in which all ways take turns, divided by the best of the
//! read floor of the same trace: on a machine that others use too, ratios within a run are what can
//! be compared.

mod peers;
mod recorded;
mod synthetic;

use kcov::Trace;
use kcov::mode::TracePc;
use kcov::signal::{Edges, NoveltyMap, Ranges, SharedMap, UniqueSet, count_hits};
use peers::{ByteMap, FxDedup, FxGlobal, Peer, SortDedup, StdGlobal, Syzkaller, Trinity};
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

/// A trace to look at, and what was seen before it.
struct Case {
    name: String,
    ranges: Ranges,
    known: Vec<u64>,
    trace: Vec<u64>,
}

/// A way to look at it: what it is called, and the work.
type Way<'c> = (&'static str, Box<dyn FnMut() + 'c>);

const ROUNDS: usize = 9;
const SAMPLE: Duration = Duration::from_millis(2);

fn main() {
    let only: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    println!("ns per PC, and in how many times the floor");
    for case in recorded::cases().into_iter().chain(synthetic::cases()) {
        if only.is_empty() || only.iter().any(|part| case.name.contains(part)) {
            report(&case);
        }
    }
}

fn report(case: &Case) {
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

    let unique: std::collections::BTreeSet<u64> = case.trace.iter().copied().collect();
    let new = unique.iter().filter(|pc| !map.contains(**pc)).count();
    let (fixed, more) = map.bytes();
    println!(
        "\n{}: {} PCs, {} different, {new} of them new; {} known; map {} + {} KiB",
        case.name,
        case.trace.len(),
        unique.len(),
        map.len(),
        fixed >> 10,
        more >> 10
    );
    check(case, &map, new);

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

    let best = measure(&mut ways);
    for ((name, _), nanos) in ways.iter().zip(&best) {
        let nanos_per_pc = nanos / case.trace.len() as f64;
        println!("    {name:<36}{nanos_per_pc:>8.3}{:>8.1}x", nanos / best[0]);
    }
    let named = |part| ways.iter().position(|(name, _)| name.starts_with(part)).expect("a way");
    let ours = best[named("kcov: anything new? live")];
    println!(
        "    anything new, live: {:.1} times faster than syzkaller's PCs, {:.1} than the Fx HashSet, \
         {:.1} than the one that also dedups",
        best[named("syzkaller, PCs")] / ours,
        best[named("Fx HashSet, global")] / ours,
        best[named("Fx HashSet, dedup")] / ours
    );
}

/// All ways see the same: a wrong one would be fast for nothing.
fn check(case: &Case, map: &NoveltyMap, new: usize) {
    assert_eq!(map.has_new(&case.trace), new > 0);
    let mut peer = FxDedup::default();
    peer.learn(&case.known);
    assert_eq!(peer.count_new(&case.trace), new);
}

/// Nanoseconds of one pass of each way.
fn measure(ways: &mut [Way<'_>]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; ways.len()];
    let mut passes = vec![1u32; ways.len()];
    for round in 0..=ROUNDS {
        for (index, (_, way)) in ways.iter_mut().enumerate() {
            loop {
                let start = Instant::now();
                (0..passes[index]).for_each(|_| way());
                let took = start.elapsed();
                // The first round only finds out how many passes fill a sample.
                if round > 0 {
                    let nanos = took.as_nanos() as f64 / f64::from(passes[index]);
                    best[index] = best[index].min(nanos);
                } else if took < SAMPLE {
                    passes[index] *= 2;
                    continue;
                }
                break;
            }
        }
    }
    best
}

/// Widened to whole pages, in which an edge stays.
fn pages(ranges: &Ranges) -> Ranges {
    let pages = ranges.iter().map(|range| range.start & !0xfff..range.end.next_multiple_of(4096));
    Ranges::new(pages).expect("a page more")
}
