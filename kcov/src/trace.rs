//! Collected records: a count that was read once, and the records that it covers.

use crate::buffer::{Buffer, Words};
use crate::mode::{AnyMode, Mode, SEAL, TraceCmp, TracePc};
use core::iter::FusedIterator;
use core::sync::atomic::AtomicU64;

/// The records that a buffer held at one moment.
///
/// The count word was read once, when this value was made. Later writes by the kernel or another
/// process do not change the number of records, and no word leads to an access outside of the
/// buffer. A count that the buffer cannot hold gives no records; see
/// [`completeness`](Self::completeness).
///
/// The records themselves are read on demand. While a session is enabled, make and read traces on
/// its own thread. Linux stores the count before the record, and NetBSD stores both without a
/// memory barrier, so another thread may see a count that includes records not yet written.
///
/// ```
/// use kcov::{Completeness, Trace, mode::TracePc};
/// use std::sync::atomic::AtomicU64;
///
/// // What a kernel leaves: the count, the records, and stale words.
/// let buffer = [2, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020, 0].map(AtomicU64::new);
/// let trace = Trace::from_words(&buffer, TracePc);
/// assert_eq!(trace.len(), 2);
/// assert_eq!(trace.completeness(), Completeness::Complete);
/// assert_eq!(trace.get(1).unwrap().address(), 0xffff_ffff_8100_0020);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Trace<'b, M: Mode> {
    /// The words of the records alone, always whole records.
    words: Words<'b>,
    mode: M,
    /// The count word, as read.
    count: u64,
    capacity: usize,
    /// Whether no driver can have stored the count.
    is_corrupt: bool,
}

/// Whether a trace holds every record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Completeness {
    /// There was room in the buffer for every record that came to it.
    Complete,
    /// The buffer is full. The kernels drop further records without counting them, so records may
    /// be missing. To avoid this, use a larger buffer, or reset before each system call.
    Truncated,
    /// The count word exceeds the capacity, or has fallen below a remote session's mark. No
    /// driver stores such a count, so the target or another process wrote to the buffer. The trace
    /// has no records, because none can be told from those of an earlier session.
    #[non_exhaustive]
    Corrupt {
        /// The count word, in records.
        count: u64,
    },
}

impl<'b, M: Mode> Trace<'b, M> {
    /// Reads the count word and fixes the number of records.
    #[inline]
    pub(crate) fn freeze(buffer: Buffer<'b>, mode: M) -> Trace<'b, M> {
        let kind = mode.kind(SEAL);
        let (width, capacity) = (kind.width(buffer.width()), kind.capacity(buffer));
        let count = buffer.count(width);
        let is_corrupt = count > capacity as u64;
        let len = if is_corrupt { 0 } else { count as usize };
        let words = buffer.words(width).skip(1).first(len * kind.stride());
        Trace { words, mode, count, capacity, is_corrupt }
    }

    /// Reads a buffer that does not belong to a [`Device`](crate::Device) of this process, for
    /// example from shared memory or a file. The first word is the count, the records follow. Words
    /// have 64 bits.
    pub fn from_words(words: &'b [AtomicU64], mode: M) -> Trace<'b, M> {
        Trace::freeze(Buffer::from_words(words), mode)
    }

    /// The mode of the records.
    #[inline]
    pub fn mode(&self) -> M {
        self.mode
    }

    /// Number of records.
    #[inline]
    pub fn len(&self) -> usize {
        self.words.len() / stride(self.mode)
    }

    /// Whether there are no records.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Number of records that the buffer can hold in this mode.
    #[inline]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether records are missing.
    #[inline]
    pub fn completeness(&self) -> Completeness {
        if self.is_corrupt {
            Completeness::Corrupt { count: self.count }
        } else if self.count == self.capacity as u64 {
            Completeness::Truncated
        } else {
            Completeness::Complete
        }
    }

    /// Whether the buffer is full: [`Completeness::Truncated`].
    #[inline]
    pub fn is_truncated(&self) -> bool {
        self.completeness() == Completeness::Truncated
    }

    /// The words of the records in place, without the count word: one word for a program counter,
    /// four for a comparison. All other methods read records from these words.
    #[inline]
    pub fn words(&self) -> Words<'b> {
        self.words
    }

    /// The record at `index`, in order of execution.
    #[inline]
    pub fn get(&self, index: usize) -> Option<M::Record> {
        self.mode.decode(self.words.skip(index.checked_mul(stride(self.mode))?), SEAL)
    }

    /// The records in order of execution.
    #[inline]
    pub fn iter(
        self,
    ) -> impl DoubleEndedIterator<Item = M::Record>
    + ExactSizeIterator
    + FusedIterator
    + Clone
    + use<'b, M> {
        Iter { words: self.words, mode: self.mode }
    }

    /// The records from `start` on; corrupt if there never were as many.
    #[cfg(feature = "std")]
    pub(crate) fn since(self, start: usize) -> Trace<'b, M> {
        let words = self.words.skip(start.saturating_mul(stride(self.mode)));
        Trace { words, is_corrupt: self.is_corrupt || start > self.len(), ..self }
    }
}

impl<'b> Trace<'b, AnyMode> {
    /// The trace as one of program counters; `None` in another mode.
    #[inline]
    pub fn as_pc(&self) -> Option<Trace<'b, TracePc>> {
        (self.mode == AnyMode::TracePc).then(|| self.with_mode(TracePc))
    }

    /// The trace as one of comparisons; `None` in another mode.
    #[inline]
    pub fn as_cmp(&self) -> Option<Trace<'b, TraceCmp>> {
        (self.mode == AnyMode::TraceCmp).then(|| self.with_mode(TraceCmp))
    }

    fn with_mode<M: Mode>(&self, mode: M) -> Trace<'b, M> {
        let Trace { words, count, capacity, is_corrupt, .. } = *self;
        Trace { words, mode, count, capacity, is_corrupt }
    }
}

/// Number of words in a record.
#[inline]
fn stride(mode: impl Mode) -> usize {
    mode.kind(SEAL).stride()
}

/// Iterator over the records of a [`Trace`].
#[derive(Clone)]
struct Iter<'b, M: Mode> {
    /// The words of the remaining records, always whole records.
    words: Words<'b>,
    mode: M,
}

impl<M: Mode> Iterator for Iter<'_, M> {
    type Item = M::Record;

    #[inline]
    fn next(&mut self) -> Option<M::Record> {
        let record = self.mode.decode(self.words, SEAL)?;
        self.words = self.words.skip(stride(self.mode));
        Some(record)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.words.len() / stride(self.mode);
        (left, Some(left))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<M::Record> {
        self.words = self.words.skip(n.saturating_mul(stride(self.mode)));
        self.next()
    }
}

impl<M: Mode> DoubleEndedIterator for Iter<'_, M> {
    #[inline]
    fn next_back(&mut self) -> Option<M::Record> {
        let rest = self.words.len().checked_sub(stride(self.mode))?;
        let record = self.mode.decode(self.words.skip(rest), SEAL);
        self.words = self.words.first(rest);
        record
    }
}

impl<M: Mode> ExactSizeIterator for Iter<'_, M> {}
impl<M: Mode> FusedIterator for Iter<'_, M> {}
