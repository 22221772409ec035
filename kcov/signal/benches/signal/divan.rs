//! The same ways as benchmarks of divan: `cargo bench -p kcov --bench divan`, with part of a name after
//! `--`. It runs one way after the other, so on a machine that does other things besides compare what
//! the table of `--bench signal` says, where they take turns.

mod peers;
mod recorded;
mod synthetic;
mod ways;

use divan::Bencher;
use divan::counter::ItemsCount;
use std::fmt;
use std::sync::LazyLock;
use ways::Case;

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
        let (_, work) = &mut ways[choice.way];
        bencher.counter(ItemsCount::new(case.trace.len())).bench_local(work);
    });
}

fn main() {
    divan::main();
}
