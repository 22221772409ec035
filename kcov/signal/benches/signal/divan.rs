//! The same ways as divan benchmarks: `cargo bench -p kcov-signal --bench divan`, with part of a
//! name after `--`. Divan runs the ways one after the other. On a busy machine, compare the figures
//! of `--bench signal` instead, where the ways take turns.

mod peers;
mod recorded;
mod synthetic;
mod ways;

use divan::Bencher;
use divan::counter::ItemsCount;
use std::fmt;
use std::sync::LazyLock;
use ways::{Case, Work};

static CASES: LazyLock<Vec<Case>> =
    LazyLock::new(|| recorded::cases().into_iter().chain(synthetic::cases()).collect());

/// One way to look at one trace.
struct Choice {
    case: usize,
    way: usize,
    name: &'static str,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", CASES[self.case].name, self.name)
    }
}

fn choices() -> Vec<Choice> {
    let mut names = Vec::new();
    ways::with(&CASES[0], |_, ways| names.extend(ways.iter().map(|(name, _)| *name)));
    let of = |case| names.iter().enumerate().map(move |(way, &name)| Choice { case, way, name });
    (0..CASES.len()).flat_map(of).collect()
}

#[divan::bench(args = choices(), sample_count = 20)]
fn trace(bencher: Bencher<'_, '_>, choice: &Choice) {
    let case = &CASES[choice.case];
    ways::with(case, |_, ways| {
        let bencher = bencher.counter(ItemsCount::new(case.trace.len()));
        let mut new = Vec::new();
        bencher.bench_local(|| {
            new.clear();
            match &mut ways[choice.way].1 {
                Work::Ask(work) => work(&mut new),
                // Includes the copy of the known set, which `--bench signal` excludes.
                Work::Learn(work) => drop(work(&mut new)),
            }
        });
    });
}

fn main() {
    divan::main();
}
