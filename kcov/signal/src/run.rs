//! Words where they lie, whether others may write them meanwhile or not.

use core::sync::atomic::{AtomicU64, Ordering};

/// Words of a buffer or of the caller, as they lie in memory.
///
/// Both kinds are read through the same functions, so that a map is asked in one way. A word of the
/// first kind can change between two loads; nothing that bounds an access is taken from a word twice.
#[derive(Clone, Copy, Debug)]
pub enum Run<'w> {
    /// Others may write these.
    Shared(&'w [AtomicU64]),
    /// Nobody writes these. Plain memory must not be read by atomic operations of the language.
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

    /// Where the first word lies. For loads of the processor, which no rule of the language covers.
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    #[inline]
    pub(crate) fn start(self) -> *const u64 {
        match self {
            Run::Shared(words) => words.as_ptr().cast(),
            Run::Plain(words) => words.as_ptr(),
        }
    }

    /// The word at `index`.
    ///
    /// # Panics
    ///
    /// If there is none.
    #[inline]
    pub(crate) fn load(self, index: usize) -> u64 {
        match self {
            Run::Shared(words) => words[index].load(Ordering::Relaxed),
            Run::Plain(words) => words[index],
        }
    }

    /// Whether a predicate holds for all words. Stops at the first for which it does not.
    #[inline(always)]
    pub(crate) fn all(self, mut holds: impl FnMut(u64) -> bool) -> bool {
        match self {
            Run::Shared(words) => words.iter().all(|word| holds(word.load(Ordering::Relaxed))),
            Run::Plain(words) => words.iter().all(|word| holds(*word)),
        }
    }

    /// Calls `each` for every word, in order.
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

    /// The words behind the first `count`, or none if there are not so many.
    #[inline]
    pub(crate) fn skip(self, count: usize) -> Run<'w> {
        match self {
            Run::Shared(words) => Run::Shared(&words[count.min(words.len())..]),
            Run::Plain(words) => Run::Plain(&words[count.min(words.len())..]),
        }
    }

    /// The words in pieces of `words` words. The last piece has what is left.
    #[inline]
    pub(crate) fn pieces(self, words: usize) -> impl Iterator<Item = Run<'w>> {
        (0..self.len()).step_by(words).map(move |start| self.skip(start).first(words))
    }

    /// Copies as many words as there are and fit. Returns the part of `to` that was written.
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
