//! A buffer that changes between any two steps of its reader, under control of the input.
//!
//! Each eight bytes of the input are one step: store a word at an index, or read one more record.
//! One thread does both, so failures are reproducible.
#![no_main]

use kcov::Trace;
use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::{AtomicU64, Ordering};

fuzz_target!(|input: &[u8]| {
    let Some((&geometry, input)) = input.split_first() else { return };
    let buffer: Box<[AtomicU64]> = (0..u64::from(geometry)).map(AtomicU64::new).collect();
    race(&buffer, input, TracePc);
    race(&buffer, input, TraceCmp);
    for &mode in AnyMode::ALL {
        race(&buffer, input, mode);
    }
});

fn race<M: Mode>(buffer: &[AtomicU64], steps: &[u8], mode: M) {
    let mut trace = Trace::from_words(buffer, mode);
    let mut records = trace.iter();
    for step in steps.chunks_exact(4) {
        let [what, place, low, high] = [step[0], step[1], step[2], step[3]];
        match what % 8 {
            0 => {
                trace = Trace::from_words(buffer, mode);
                records = trace.iter();
            }
            1 => drop(records.next()),
            2 => drop(records.next_back()),
            3 => drop(records.nth(usize::from(low))),
            4 => drop(trace.get(usize::from(place))),
            5 => store(buffer, 0, u64::MAX << (high % 64)),
            6 => store(buffer, 0, u64::from(low)),
            _ => store(buffer, usize::from(place), u64::from(high) << 56 | u64::from(low)),
        }
        // A frozen trace does not change.
        assert!(records.len() <= trace.len() && trace.len() <= trace.capacity());
    }
    assert_eq!(records.len(), records.count());
}

fn store(buffer: &[AtomicU64], place: usize, word: u64) {
    if let Some(there) = buffer.get(place) {
        there.store(word, Ordering::Relaxed);
    }
}
