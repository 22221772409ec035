//! Reads arbitrary words, as a buffer of any length, in every mode and in every way.
//!
//! The first byte of the input says how many words the buffer is longer or shorter than the rest of
//! the input, so counts and geometries disagree in all directions.
#![no_main]

use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use kcov::{AnyRecord, Comparison, Completeness, Trace};
use libfuzzer_sys::fuzz_target;
use std::sync::atomic::AtomicU64;

fuzz_target!(|input: &[u8]| {
    let Some((&geometry, input)) = input.split_first() else { return };
    let mut words: Vec<u64> = input
        .chunks(8)
        .map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_le_bytes(bytes)
        })
        .collect();
    let length = words.len();
    words
        .resize((length + usize::from(geometry & 7)).saturating_sub(usize::from(geometry >> 5)), 7);
    // Allocated with exactly this length, so that out-of-bounds accesses are detected.
    let buffer: Box<[AtomicU64]> = words.iter().copied().map(AtomicU64::new).collect();

    let trace = Trace::from_words(&buffer, TracePc);
    read(trace);
    for (record, word) in trace.iter().zip(&words[1.min(words.len())..]) {
        assert_eq!(record.address(), *word);
    }
    let trace = Trace::from_words(&buffer, TraceCmp);
    read(trace);
    for (record, words) in trace.iter().zip(words[1.min(words.len())..].chunks_exact(4)) {
        assert_eq!(record, Comparison::from_words(words.try_into().expect("four words")));
        assert!(matches!(record.operand_size(), 1 | 2 | 4 | 8));
    }
    for &mode in AnyMode::ALL {
        let trace = Trace::from_words(&buffer, mode);
        read(trace);
        for record in trace.iter() {
            assert_eq!(matches!(record, AnyRecord::Pc(_)), mode == AnyMode::TracePc);
        }
    }
});

/// All ways of reading agree.
fn read<M: Mode>(trace: Trace<'_, M>) {
    assert!(trace.len() <= trace.capacity());
    assert_eq!(trace.iter().len(), trace.len());
    assert_eq!(trace.iter().count(), trace.len());
    let (mut forwards, mut backwards) = (trace.iter(), trace.iter().rev());
    for index in 0..trace.len() {
        assert!(trace.get(index) == forwards.next());
        assert!(trace.get(trace.len() - 1 - index) == backwards.next());
    }
    assert!(trace.get(trace.len()).is_none() && trace.get(usize::MAX).is_none());
    assert!(forwards.next().is_none() && backwards.next().is_none());
    assert!(trace.iter().nth(trace.len()).is_none());
    match trace.completeness() {
        Completeness::Complete => assert!(trace.len() < trace.capacity()),
        Completeness::Truncated => assert_eq!(trace.len(), trace.capacity()),
        Completeness::Corrupt { count, .. } => {
            assert!(trace.is_empty() && count > trace.capacity() as u64);
        }
        other => panic!("no such verdict: {other:?}"),
    }

    let words = trace.words();
    let mut copy = vec![0; words.len()];
    assert_eq!(words.copy_to(&mut copy), words.len());
    assert!((0..).map_while(|index| words.get(index)).eq(copy.iter().copied()));
    // A copy of the words is a trace of the same records.
    let count = trace.len() as u64;
    let again: Vec<_> = [count].into_iter().chain(copy).map(AtomicU64::new).collect();
    assert!(Trace::from_words(&again, trace.mode()).iter().eq(trace.iter()));
}
