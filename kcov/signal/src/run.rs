//! Words in place, shared or exclusive.

use core::sync::atomic::{AtomicU64, Ordering};

/// Words of a buffer or of the caller, in place.
///
/// Both kinds have the same methods, so lookups have one form. A shared word can change between two
/// loads, so nothing that bounds an access is loaded twice.
#[derive(Clone, Copy, Debug)]
pub enum Run<'w> {
    /// Others may write these words.
    Shared(&'w [AtomicU64]),
    /// Nobody writes these words. Rust has no atomic loads from plain words.
    Plain(&'w [u64]),
}

impl<'w> Run<'w> {
    #[inline]
    pub(crate) fn len(self) -> usize {
        match self {
            Run::Shared(words) => words.len(),
            Run::Plain(words) => words.len(),
        }
    }

    /// Whether a predicate holds for all words. Stops at the first failure.
    #[inline(always)]
    pub(crate) fn all(self, mut holds: impl FnMut(u64) -> bool) -> bool {
        match self {
            Run::Shared(words) => eights(words, |word| holds(word.load(Ordering::Relaxed))),
            Run::Plain(words) => eights(words, |word| holds(*word)),
        }
    }

    /// Calls `each` with every word, in order.
    #[inline(always)]
    pub(crate) fn for_each(self, mut each: impl FnMut(u64)) {
        self.all(|word| {
            each(word);
            true
        });
    }

    /// The first `count` words, or all if there are fewer.
    #[inline]
    pub(crate) fn first(self, count: usize) -> Run<'w> {
        match self {
            Run::Shared(words) => Run::Shared(&words[..count.min(words.len())]),
            Run::Plain(words) => Run::Plain(&words[..count.min(words.len())]),
        }
    }

    /// The words after the first `count`; none if there are fewer.
    #[inline]
    pub(crate) fn skip(self, count: usize) -> Run<'w> {
        match self {
            Run::Shared(words) => Run::Shared(&words[count.min(words.len())..]),
            Run::Plain(words) => Run::Plain(&words[count.min(words.len())..]),
        }
    }

    /// The words in pieces of `words` words. The last piece may be shorter.
    #[inline]
    pub(crate) fn pieces(self, words: usize) -> impl Iterator<Item = Run<'w>> {
        (0..self.len()).step_by(words).map(move |start| self.skip(start).first(words))
    }

    /// Copies as many words as fit. Returns the written part of `to`.
    #[inline]
    pub(crate) fn copy(self, to: &mut [u64]) -> &[u64] {
        let count = self.len().min(to.len());
        let to = &mut to[..count];
        match self {
            Run::Shared(words) => {
                to.iter_mut().zip(words).for_each(|(to, word)| *to = word.load(Ordering::Relaxed));
            }
            Run::Plain(words) => to.copy_from_slice(&words[..count]),
        }
        to
    }
}

/// Whether a predicate holds for all words. The loop is unrolled, because it costs as much as a lookup
/// in a map.
#[inline(always)]
fn eights<W>(words: &[W], mut holds: impl FnMut(&W) -> bool) -> bool {
    let eights = words.chunks_exact(8);
    let rest = eights.remainder();
    { eights }.all(|eight| eight.iter().all(&mut holds)) && rest.iter().all(holds)
}
