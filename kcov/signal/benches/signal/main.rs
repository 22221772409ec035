//! What it costs to find out whether a trace has something new, in one process with what peers do:
//! `cargo bench -p kcov --bench signal`, or with part of a trace's name after `--`.
//!
//! Each figure is the best of some rounds, in which all ways take turns, divided by the best of the
//! read floor of the same trace: on a machine that others use too, ratios within a run are what can
//! be compared.

mod peers;
mod recorded;
mod synthetic;
mod ways;

use kcov::signal::NoveltyMap;
use peers::{FxDedup, Peer};
use std::time::{Duration, Instant};
use ways::{Case, Way};

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
    ways::with(case, |map, ways| {
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
        check(case, map, new);

        let best = measure(ways);
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
    });
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
