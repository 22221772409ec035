//! Maps that threads and processes share, and memory that holds no map.

use kcov_signal::{MemoryError, NoveltyMap, Ranges};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::thread;

const _: () = {
    const fn send_and_sync<T: Send + Sync>() {}
    send_and_sync::<NoveltyMap>();
};

const TEXT: u64 = 0xffff_ffff_8100_0000;
const BYTES: u64 = if cfg!(miri) { 0x1000 } else { 0x10_0000 };
const THREADS: u64 = 4;

fn memory(words: usize) -> Vec<AtomicU64> {
    (0..words).map(|_| AtomicU64::new(0)).collect()
}

fn text() -> Ranges {
    Ranges::single(TEXT..TEXT + BYTES).unwrap()
}

fn open(
    memory: &[AtomicU64],
    ranges: Ranges,
    fallback: usize,
) -> Result<NoveltyMap<&[AtomicU64]>, MemoryError> {
    NoveltyMap::open(memory, ranges, fallback)
}

/// A pseudorandom sequence.
fn scatter(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        state >> 33
    })
}

#[test]
fn exactly_one_thread_sees_each_signal_as_new() {
    let rounds = if cfg!(miri) { 1 } else { 10 };
    let count = if cfg!(miri) { 50 } else { 20_000 };
    for round in 0..rounds {
        let fallback = if cfg!(miri) { 64 } else { 3000 };
        let memory = memory(NoveltyMap::words(&text(), fallback));
        let seen = AtomicUsize::new(0);
        let traces: Vec<Vec<u64>> = (0..THREADS)
            .map(|thread| {
                let numbers = scatter(round * THREADS + thread).take(count);
                // Many collide, and a few are outside.
                numbers
                    .map(|n| if n % 16 == 0 { n % 2048 } else { TEXT + n % (BYTES / 32) })
                    .collect()
            })
            .collect();
        thread::scope(|scope| {
            for trace in &traces {
                let (memory, seen) = (&memory, &seen);
                scope.spawn(move || {
                    let map = open(memory, text(), fallback).unwrap();
                    let merged = map.merge(trace);
                    assert_eq!(merged.unrecorded, 0);
                    seen.fetch_add(merged.new, Ordering::Relaxed);
                    assert!(!map.has_new(trace));
                });
            }
        });
        let map = open(&memory, text(), fallback).unwrap();
        let expected: BTreeSet<u64> = traces.into_iter().flatten().collect();
        assert!(map.iter().eq(expected.iter().copied()));
        assert_eq!(seen.into_inner(), expected.len());
    }
}

#[test]
fn a_full_fallback_says_so() {
    let memory = memory(NoveltyMap::words(&text(), 2));
    let map = open(&memory, text(), 2).unwrap();
    let merged = map.merge(&[1, 2, 3, 1, TEXT]);
    assert_eq!((merged.new, merged.unrecorded), (3, 1));
    assert!(map.has_new(&[3]) && !map.has_new(&[2, TEXT]));
    assert_eq!(map.iter().collect::<Vec<_>>(), [1, 2, TEXT]);
}

#[test]
fn a_fallback_has_a_limit() {
    let needed = NoveltyMap::words(&text(), NoveltyMap::MAX_FALLBACK);
    assert_eq!(NoveltyMap::words(&text(), usize::MAX), needed);
    assert_eq!(
        open(&[], text(), usize::MAX).unwrap_err(),
        MemoryError::TooSmall { needed, given: 0 }
    );
}

#[test]
fn memory_of_something_else_is_refused() {
    let needed = NoveltyMap::words(&text(), 2);
    let memory = memory(needed);
    assert_eq!(
        open(&memory[1..], text(), 2).unwrap_err(),
        MemoryError::TooSmall { needed, given: needed - 1 }
    );
    open(&memory, text(), 2).unwrap();
    open(&memory, text(), 2).unwrap();
    let other = Ranges::single(TEXT..TEXT + 0x800).unwrap();
    assert_eq!(open(&memory, other, 2).unwrap_err(), MemoryError::OtherMap);
    assert_eq!(open(&memory, text(), 1).unwrap_err(), MemoryError::OtherMap);
}

#[test]
fn what_others_scribble_leads_to_no_harm() {
    let needed = NoveltyMap::words(&text(), 4);
    let memory = memory(needed);
    let map = open(&memory, text(), 4).unwrap();
    memory[1..].iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
    assert!(!map.has_new(&[TEXT]) && map.has_new(&[5]));
    let merged = map.merge(&[5]);
    assert_eq!((merged.new, merged.unrecorded), (0, 1));
    assert!(map.iter().count() > 0);
    map.clear();
    assert!(!map.to_bytes().is_empty() && map.has_new(&[TEXT]));
}

#[test]
fn a_cleared_map_is_as_good_as_new() {
    let memory = memory(NoveltyMap::words(&text(), NoveltyMap::FALLBACK));
    let map = open(&memory, text(), NoveltyMap::FALLBACK).unwrap();
    let other = open(&memory, text(), NoveltyMap::FALLBACK).unwrap();
    assert!(map.is_empty() && map.ranges() == &text());
    for _ in 0..3 {
        assert_eq!(map.merge(&[0, 7, TEXT, TEXT + 1]).new, 4);
        assert_eq!((other.len(), other.is_empty()), (4, false));
        other.clear();
        assert!(map.is_empty());
        assert_eq!((map.len(), map.iter().next()), (0, None));
    }
    let outside: Vec<u64> = (0..=map.fallback_capacity() as u64).collect();
    let merged = map.merge(&outside);
    assert_eq!((merged.new, merged.unrecorded), (NoveltyMap::FALLBACK, 1));
}
