//! Reading of synthetic buffers: valid ones, and ones that no kernel leaves.

use kcov::mode::{AnyMode, Mode, TraceCmp, TracePc};
use kcov::{AnyRecord, Comparison, Completeness, Pc, Trace};
use proptest::prelude::*;
use std::sync::atomic::{AtomicU64, Ordering};

fn words(words: impl IntoIterator<Item = u64>) -> Vec<AtomicU64> {
    words.into_iter().map(AtomicU64::new).collect()
}

fn pcs(trace: Trace<'_, TracePc>) -> Vec<u64> {
    trace.iter().map(Pc::address).collect()
}

#[test]
fn pcs_follow_the_count() {
    let buffer = words([2, 0xffff_ffff_8123_4567, 0xffff_ffff_8123_4589, 3, 4]);
    let trace = Trace::from_words(&buffer, TracePc);
    assert_eq!(pcs(trace), [0xffff_ffff_8123_4567, 0xffff_ffff_8123_4589]);
    assert_eq!((trace.len(), trace.capacity()), (2, 4));
    assert!(!trace.is_truncated() && !trace.is_empty());
}

#[test]
fn comparisons_are_four_words_each() {
    let buffer = words([1, 5, 0x10, 0x20, 0xffff_ffff_8100_0000, 0, 0, 0, 0]);
    let trace = Trace::from_words(&buffer, TraceCmp);
    assert_eq!((trace.len(), trace.capacity(), trace.is_truncated()), (1, 2, false));
    let comparison = trace.get(0).unwrap();
    assert_eq!(comparison.operands(), (0x10, 0x20));
    assert_eq!(comparison.operand_size(), 4);
    assert!(comparison.is_const());
    assert_eq!(comparison.pc(), Pc::new(0xffff_ffff_8100_0000));
    assert_eq!(comparison.raw_type(), 5);
    assert_eq!(trace.get(1), None);
}

#[test]
fn type_bits_give_size_and_constness() {
    for (kind, size, is_const) in
        [(0, 1, false), (1, 1, true), (2, 2, false), (3, 2, true), (4, 4, false), (7, 8, true)]
    {
        let comparison = Comparison::from_words([kind, 0, 0, 0]);
        assert_eq!((comparison.operand_size(), comparison.is_const()), (size, is_const));
    }
}

#[test]
fn the_count_is_read_once() {
    let buffer = words([1, 10, 11, 12]);
    let trace = Trace::from_words(&buffer, TracePc);
    buffer[0].store(u64::MAX, Ordering::Relaxed);
    assert_eq!(pcs(trace), [10]);
    buffer[0].store(0, Ordering::Relaxed);
    assert_eq!(pcs(trace), [10]);
    assert_eq!(pcs(Trace::from_words(&buffer, TracePc)), [0u64; 0]);
}

#[test]
fn the_iterator_goes_both_ways() {
    let buffer = words([4, 1, 2, 3, 4]);
    let mut iter = Trace::from_words(&buffer, TracePc).iter();
    assert_eq!(iter.len(), 4);
    assert_eq!(iter.next_back(), Some(Pc::new(4)));
    assert_eq!(iter.nth(1), Some(Pc::new(2)));
    assert_eq!(iter.next(), Some(Pc::new(3)));
    assert_eq!((iter.next(), iter.next_back()), (None, None));
    assert_eq!(Trace::from_words(&buffer, TracePc).iter().nth(usize::MAX), None);
}

/// Another thread stores to all words while this one reads, also under Miri's data race detector.
#[test]
fn a_buffer_that_is_scribbled_over_is_read_within_bounds() {
    let buffer = words((0..33).map(|word| word * 3));
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut noise = 0x9e37_79b9_7f4a_7c15_u64;
            while !done.load(Ordering::Relaxed) {
                for word in &buffer {
                    noise = noise.wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
                    word.store(noise >> (noise % 64), Ordering::Relaxed);
                }
            }
        });
        for _ in 0..if cfg!(miri) { 20 } else { 2000 } {
            let trace = Trace::from_words(&buffer, TracePc);
            assert_eq!(trace.iter().count(), trace.len());
            assert_eq!(trace.iter().rev().count(), trace.len());
            assert!(trace.len() <= trace.capacity());
            for &mode in AnyMode::ALL {
                let trace = Trace::from_words(&buffer, mode);
                assert_eq!((0..).map_while(|index| trace.get(index)).count(), trace.len());
            }
        }
        done.store(true, Ordering::Relaxed);
    });
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if cfg!(miri) { 32 } else { 1024 },
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// Any words decode within bounds, by the formula of each mode.
    #[test]
    fn any_words_decode(raw in prop::collection::vec(any::<u64>(), 0..40), small in 0u64..50) {
        for count in [raw.first().copied().unwrap_or(0), small] {
            let mut raw = raw.clone();
            if let Some(first) = raw.first_mut() {
                *first = count;
            }
            let buffer = words(raw.iter().copied());
            let body = raw.get(1..).unwrap_or(&[]);
            // An empty buffer has a count of 0; a count that the buffer cannot hold gives no
            // records.
            let count = if raw.is_empty() { 0 } else { count };
            let len = |capacity: usize| if count <= capacity as u64 { count as usize } else { 0 };

            let trace = Trace::from_words(&buffer, TracePc);
            prop_assert_eq!(pcs(trace), &body[..len(body.len())]);
            check_reading(trace, count)?;

            let trace = Trace::from_words(&buffer, TraceCmp);
            let expected: Vec<_> = body
                .chunks_exact(4)
                .take(len(body.len() / 4))
                .map(|words| Comparison::from_words(words.try_into().unwrap()))
                .collect();
            prop_assert_eq!(trace.iter().collect::<Vec<_>>(), expected);
            check_reading(trace, count)?;
            for comparison in trace.iter() {
                prop_assert!([1, 2, 4, 8].contains(&comparison.operand_size()));
            }

            for &mode in AnyMode::ALL {
                let trace = Trace::from_words(&buffer, mode);
                check_reading(trace, count)?;
                for record in trace.iter() {
                    prop_assert_eq!(matches!(record, AnyRecord::Pc(_)), mode == AnyMode::TracePc);
                }
            }
        }
    }
}

/// All ways to read a trace agree with each other and with the count word.
fn check_reading<M: Mode>(trace: Trace<'_, M>, count: u64) -> Result<(), TestCaseError>
where
    M::Record: Raw,
{
    let all: Vec<_> = trace.iter().collect();
    prop_assert_eq!(all.len(), trace.len());
    prop_assert_eq!((0..).map_while(|i| trace.get(i)).collect::<Vec<_>>(), all.clone());
    prop_assert_eq!(
        trace.iter().rev().collect::<Vec<_>>(),
        all.iter().rev().copied().collect::<Vec<_>>()
    );

    let capacity = trace.capacity() as u64;
    prop_assert_eq!(trace.len() as u64, if count <= capacity { count } else { 0 });
    match count.cmp(&capacity) {
        std::cmp::Ordering::Less => {
            prop_assert_eq!(trace.completeness(), Completeness::Complete);
        }
        std::cmp::Ordering::Equal => {
            prop_assert_eq!(trace.completeness(), Completeness::Truncated);
        }
        std::cmp::Ordering::Greater => assert_corrupt(trace, count),
    }
    prop_assert_eq!(trace.is_truncated(), trace.completeness() == Completeness::Truncated);
    prop_assert_eq!(trace.is_empty(), all.is_empty());

    // The words are exactly the records, in order.
    let of_records: Vec<u64> = all.iter().flat_map(Raw::words).collect();
    let in_place: Vec<u64> =
        (0..trace.words().len()).filter_map(|i| trace.words().get(i)).collect();
    prop_assert_eq!(&in_place, &of_records);
    prop_assert_eq!(
        (trace.words().len(), trace.words().is_empty()),
        (in_place.len(), all.is_empty())
    );
    prop_assert_eq!(
        (0..).map_while(|i| trace.words().get(i)).collect::<Vec<_>>(),
        in_place.clone()
    );

    // A copy has as many words as fit, and leaves the rest of the target unchanged.
    for room in [0, 1, in_place.len() / 2, in_place.len(), in_place.len() + 3] {
        let mut copy = vec![0x5555; room];
        let copied = trace.words().copy_to(&mut copy);
        prop_assert_eq!(copied, room.min(in_place.len()));
        prop_assert_eq!(&copy[..copied], &in_place[..copied]);
        prop_assert!(copy[copied..].iter().all(|word| *word == 0x5555));
    }
    Ok(())
}

fn assert_corrupt<M: Mode>(trace: Trace<'_, M>, count: u64) {
    let completeness = trace.completeness();
    assert!(
        matches!(completeness, Completeness::Corrupt { count: stored, .. } if stored == count),
        "{completeness:?}"
    );
}

/// The words of a record, from its public methods.
trait Raw {
    fn words(&self) -> Vec<u64>;
}

impl Raw for Pc {
    fn words(&self) -> Vec<u64> {
        vec![self.address()]
    }
}

impl Raw for Comparison {
    fn words(&self) -> Vec<u64> {
        let (first, second) = self.operands();
        vec![self.raw_type(), first, second, self.pc().address()]
    }
}

impl Raw for AnyRecord {
    fn words(&self) -> Vec<u64> {
        match self {
            AnyRecord::Pc(pc) => pc.words(),
            AnyRecord::Comparison(comparison) => comparison.words(),
            other => panic!("no such record: {other:?}"),
        }
    }
}
