//! Bursts of passes, which take turns.

use std::time::Instant;

/// Nanoseconds of a burst that is not traced. It is short, so most bursts are not interrupted.
const BURST: f64 = 200e3;

/// Runs a number of passes and returns the nanoseconds of one.
pub type Way<'a> = &'a mut dyn FnMut(u32) -> f64;

/// The passes before a burst, so every way begins with warm caches.
pub fn warming(passes: u32) -> u32 {
    passes.div_ceil(4)
}

pub fn time(passes: u32, mut pass: impl FnMut()) -> f64 {
    (0..warming(passes)).for_each(|_| pass());
    let start = Instant::now();
    (0..passes).for_each(|_| pass());
    start.elapsed().as_nanos() as f64 / f64::from(passes)
}

/// The best of the rounds for each way. The ways take turns. The first one is not traced.
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
