//! Measures the cost of checking a trace for new PCs, in one process with the methods of peers:
//! `cargo bench -p kcov-signal --bench signal`, or with part of a trace's name after `--`.
//!
//! All ways take turns in several rounds. Each figure is the best round, divided by the best round
//! of the read floor on the same trace. On a busy machine, only ratios within a run are comparable.

mod peers;
mod recorded;
mod synthetic;
mod ways;

use kcov_signal::NoveltyMap;
use std::collections::BTreeSet;
use std::hint::black_box;
use std::time::{Duration, Instant};
use ways::{Case, Way, Work};

const ROUNDS: usize = 9;

/// The ways that name exactly the new PCs. Others use hashes or coarse bits, and miss some.
const NAMES_ALL: &[&str] = &[
    "kcov: which are new? live",
    "kcov: merge and name, live",
    "Fx HashSet, global only",
    "Fx HashSet, one per execution too",
    "Fx HashSet, merge and name",
];
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
        let new: BTreeSet<u64> =
            case.trace.iter().copied().filter(|pc| !map.contains(*pc)).collect();
        let count = case.trace.iter().filter(|pc| new.contains(pc)).count();
        println!(
            "\n{}: {} PCs, {:.1} % of them new, {} different new ones; {} known",
            case.name,
            case.trace.len(),
            100.0 * count as f64 / case.trace.len() as f64,
            new.len(),
            map.len()
        );
        check(case, map, &new, ways);

        let best = measure(ways);
        for ((name, _), nanos) in ways.iter().zip(&best) {
            let nanos_per_pc = nanos / case.trace.len() as f64;
            println!("    {name:<36}{nanos_per_pc:>8.3}{:>8.1}x", nanos / best[0]);
        }
    });
}

/// Checks that all ways agree: a wrong one could be fast.
fn check(case: &Case, map: &NoveltyMap, new: &BTreeSet<u64>, ways: &mut [Way<'_>]) {
    assert_eq!(map.has_new(&case.trace), !new.is_empty());
    let mut named = Vec::new();
    for (name, work) in ways {
        named.clear();
        match work {
            Work::Ask(work) => work(&mut named),
            Work::Learn(work) => drop(work(&mut named)),
        }
        if NAMES_ALL.contains(name) {
            assert!(named.iter().copied().collect::<BTreeSet<u64>>() == *new, "{name}");
        }
    }
}

/// Nanoseconds of one pass of each way.
fn measure(ways: &mut [Way<'_>]) -> Vec<f64> {
    let mut best = vec![f64::INFINITY; ways.len()];
    let mut passes = vec![1u32; ways.len()];
    let mut new = Vec::new();
    for round in 0..=ROUNDS {
        for (index, (_, way)) in ways.iter_mut().enumerate() {
            // Warms the caches, because the other ways have replaced their content.
            time(way, 1, &mut new);
            loop {
                let took = time(way, passes[index], &mut new);
                // The first round only determines how many passes fill a sample.
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

fn time(work: &mut Work<'_>, passes: u32, new: &mut Vec<u64>) -> Duration {
    match work {
        Work::Ask(work) => {
            let start = Instant::now();
            for _ in 0..passes {
                new.clear();
                work(new);
                black_box(&new);
            }
            start.elapsed()
        }
        Work::Learn(work) => (0..passes)
            .map(|_| {
                new.clear();
                work(new)
            })
            .sum(),
    }
}
