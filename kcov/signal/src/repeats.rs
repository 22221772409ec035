//! Repeated runs of one input: stable signals and noise.

use crate::signals::{Signals, for_each};
use alloc::vec::Vec;
use core::fmt;

/// Separates the signals that every run of an input had from those that only some runs had.
///
/// Interrupts, other threads and state left by earlier inputs change a kernel's path from run to
/// run. A fuzzer reruns an input with new signals a few times and keeps the signals that come each
/// time.
///
/// The answer is exact. Memory grows with the number of distinct signals.
///
/// ```
/// # use kcov_signal::Repeats;
/// let mut repeats = Repeats::new();
/// repeats.add_run(&[7, 3, 7]);
/// repeats.add_run(&[3, 5, 7]);
/// assert!(repeats.stable().eq([3, 7]));
/// assert!(repeats.noise().eq([5]));
/// ```
#[derive(Clone, Default)]
pub struct Repeats {
    runs: usize,
    /// Signals in ascending order, and the number of runs that had each.
    counts: Vec<(u64, usize)>,
    /// Scratch space for the signals of a run.
    run: Vec<u64>,
}

impl Repeats {
    /// Starts with no runs.
    #[must_use]
    pub fn new() -> Repeats {
        Repeats::default()
    }

    /// Adds the signals of one run. Allocates.
    pub fn add_run(&mut self, signals: impl Signals) {
        let Repeats { runs, counts, run } = self;
        *runs += 1;
        run.clear();
        for_each(signals, |signal| run.push(signal));
        run.sort_unstable();
        run.dedup();
        let (mut at, before) = (0, counts.len());
        for &signal in &*run {
            while at < before && counts[at].0 < signal {
                at += 1;
            }
            if at < before && counts[at].0 == signal {
                counts[at].1 += 1;
            } else {
                counts.push((signal, 1));
            }
        }
        // Two ascending sequences, which the stable sort merges.
        counts.sort();
    }

    /// The number of runs.
    #[must_use]
    pub fn runs(&self) -> usize {
        self.runs
    }

    /// The signals that all runs had, in ascending order.
    pub fn stable(&self) -> impl Iterator<Item = u64> + '_ {
        self.counts.iter().filter(|(_, count)| *count == self.runs).map(|(signal, _)| *signal)
    }

    /// The signals that only some runs had, in ascending order.
    pub fn noise(&self) -> impl Iterator<Item = u64> + '_ {
        self.counts.iter().filter(|(_, count)| *count < self.runs).map(|(signal, _)| *signal)
    }

    /// Forgets all runs, for the next input. Keeps the memory.
    pub fn clear(&mut self) {
        self.runs = 0;
        self.counts.clear();
    }
}

/// Shows numbers, not the signals: there may be millions.
impl fmt::Debug for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Repeats")
            .field("runs", &self.runs)
            .field("signals", &self.counts.len())
            .finish_non_exhaustive()
    }
}
