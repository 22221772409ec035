//! Proposals for Linux that are in no released kernel, one file each.

pub(super) mod ext;
pub(super) mod uniq;
pub(super) mod unique;

use super::*;

fn records_of(map: &Map) -> Vec<u64> {
    let count = crate::checks::setup::index(map.count());
    assert!(count < map.words(), "the buffer has room");
    map.copy(1, count)
}

/// The values from several runs of the same calls. An interrupt may add values to some runs.
#[derive(Debug, Default)]
struct Seen {
    /// The values seen in every run.
    always: BTreeSet<u64>,
    /// The values seen in any run.
    ever: BTreeSet<u64>,
}

impl Seen {
    fn in_runs(run: impl Fn() -> Vec<u64>) -> Seen {
        const RUNS: usize = 12;
        let mut runs = (0..RUNS).map(|_| run().into_iter().collect::<BTreeSet<_>>());
        let first = runs.next().expect("a run");
        let mut seen = Seen { always: first.clone(), ever: first };
        for run in runs {
            seen.always.retain(|value| run.contains(value));
            seen.ever.extend(run);
        }
        seen
    }

    /// Panics unless both are runs of the same calls.
    #[track_caller]
    fn assert_same(&self, other: &Seen) {
        assert!(self.always.len() > 10, "{} values are too few to tell", self.always.len());
        let missing: Vec<_> = self.always.difference(&other.ever).collect();
        assert!(missing.is_empty(), "missing in the second: {missing:x?}");
        let missing: Vec<_> = other.always.difference(&self.ever).collect();
        assert!(missing.is_empty(), "missing in the first: {missing:x?}");
    }
}

/// Panics unless each value occurs exactly once.
#[track_caller]
fn assert_once<T: Ord + std::fmt::Debug>(values: &[T]) {
    let mut seen = BTreeSet::new();
    let twice: Vec<_> = values.iter().filter(|value| !seen.insert(*value)).collect();
    assert!(!values.is_empty(), "nothing was recorded");
    assert!(twice.is_empty(), "recorded again: {twice:x?}");
}

/// Calls that take different paths, but the same ones each time.
fn calls() {
    call();
    seek_nowhere();
    compare_argument(MAGIC);
    switch_over_argument();
}

fn call_repeatedly(times: usize) {
    for _ in 0..times {
        call();
        seek_nowhere();
    }
}

/// The program counters of the calls, in plain mode.
fn plain(cx: &Context) -> Vec<u64> {
    in_mode(cx, KCOV_TRACE_PC)
}

/// The records of the calls in a mode with one word per record.
fn in_mode(cx: &Context, mode: u32) -> Vec<u64> {
    let (device, map) = collecting(cx, mode);
    map.reset();
    calls();
    let records = records_of(&map);
    device.disable().expect("disabled");
    records
}
