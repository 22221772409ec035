//! The layout under a 32-bit kernel, which the public API shows only to 32-bit programs.

use super::*;
use crate::mode::{TraceCmp, TracePc};
use crate::trace::Trace;
use crate::{Comparison, Completeness, Pc};

fn narrow(words: &[AtomicU64]) -> Buffer<'_> {
    let start = NonNull::from(words).cast();
    // SAFETY: the memory of `Buffer::from_words`, viewed as twice as many half-words.
    unsafe { Buffer::new(start, size_of_val(words), Width::W32) }
}

/// Two 32-bit words in memory order, as one 64-bit word.
fn pair(first: u32, second: u32) -> AtomicU64 {
    let mut bytes = [0; 8];
    bytes[..4].copy_from_slice(&first.to_ne_bytes());
    bytes[4..].copy_from_slice(&second.to_ne_bytes());
    AtomicU64::new(u64::from_ne_bytes(bytes))
}

#[test]
fn narrow_pcs_are_words_of_32_bits() {
    let words = [pair(2, 0xc010_0000), pair(0xc010_0010, 0xdead_beef)];
    let trace = Trace::freeze(narrow(&words), TracePc);
    assert_eq!((trace.len(), trace.capacity(), trace.is_truncated()), (2, 3, false));
    assert_eq!(trace.iter().map(Pc::address).collect::<Vec<_>>(), [0xc010_0000, 0xc010_0010]);
    assert_eq!(trace.iter().next_back(), trace.get(1));
    let mut copy = [0; 3];
    assert_eq!(trace.words().copy_to(&mut copy), 2);
    assert_eq!(copy, [0xc010_0000, 0xc010_0010, 0]);
    assert!(matches!(trace.words().0, Slice::U32(_)));
}

#[test]
fn narrow_comparisons_are_words_of_64_bits() {
    let words = [1, 6, 7, 8, 9, 10].map(AtomicU64::new);
    let trace = Trace::freeze(narrow(&words), TraceCmp);
    assert_eq!((trace.len(), trace.capacity()), (1, 1));
    assert_eq!(trace.completeness(), Completeness::Truncated);
    assert_eq!(trace.get(0), Some(Comparison::from_words([6, 7, 8, 9])));
    assert!(matches!(trace.words().0, Slice::U64(_)));
}

#[test]
fn narrow_count_is_stored_in_its_own_width() {
    let words = [pair(9, 0xc010_0000)];
    narrow(&words).set_count(Width::W32, 1);
    assert_eq!(words[0].load(Ordering::Relaxed), pair(1, 0xc010_0000).into_inner());
}

#[test]
fn no_words_are_an_empty_trace() {
    let trace = Trace::freeze(Buffer::from_words(&[]), TracePc);
    assert_eq!((trace.len(), trace.capacity()), (0, 0));
}
