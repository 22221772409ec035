//! Measures several ways to run the same work, in short bursts that alternate.

use std::time::Instant;

/// The length of a burst without tracing, in nanoseconds. Most bursts of this length run without an
/// interruption.
const BURST: f64 = 200e3;

/// Runs this many passes and returns the time of one, in nanoseconds.
pub type Way<'a> = &'a mut dyn FnMut(u32) -> f64;

/// The number of passes before a burst, to warm the caches.
pub fn warming(passes: u32) -> u32 {
    passes.div_ceil(4)
}

pub fn time(passes: u32, mut pass: impl FnMut()) -> f64 {
    (0..warming(passes)).for_each(|_| pass());
    let start = Instant::now();
    (0..passes).for_each(|_| pass());
    start.elapsed().as_nanos() as f64 / f64::from(passes)
}

/// The shortest time of each way. The ways run one burst each in every round. The first one is not
/// traced.
pub fn best<const N: usize>(rounds: u32, mut ways: [Way<'_>; N]) -> [f64; N] {
    let one = (0..5).map(|_| ways[0](1)).fold(f64::INFINITY, f64::min);
    let passes = (BURST / one).clamp(1.0, 4096.0) as u32;
    let mut best = [f64::INFINITY; N];
    for _ in 0..rounds {
        for (best, way) in best.iter_mut().zip(&mut ways) {
            *best = best.min(way(passes));
        }
    }
    best
}
