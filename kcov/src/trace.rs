//! What was collected: a count that was read once, and the records that it counts.

use crate::buffer::{Buffer, Words};
use crate::mode::{Mode, SEAL};
use core::fmt;
use core::iter::FusedIterator;
use core::sync::atomic::AtomicU64;

/// The records that a buffer held at one moment.
///
/// The count word was read once, when this value was made. Nothing that the kernel or another
/// process writes afterwards changes the number of records, and no word leads to an access outside
/// of the buffer. A count that the buffer cannot hold gives no records, and
/// [`completeness`](Self::completeness) says so.
///
/// The records themselves are read when they are asked for. While a session is enabled, make and
/// read traces in its own thread: the kernels raise the count before they store the record that it
/// counts, program counters too, so another thread may see the count run ahead.
///
/// ```
/// use kcov::{Completeness, Trace, mode::TracePc};
/// use std::sync::atomic::AtomicU64;
///
/// // What a kernel leaves: the count, the records, and words of no meaning.
/// let buffer = [2, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020, 0].map(AtomicU64::new);
/// let trace = Trace::from_words(&buffer, TracePc);
/// assert_eq!(trace.len(), 2);
/// assert_eq!(trace.completeness(), Completeness::Complete);
/// assert_eq!(trace.get(1).unwrap().address(), 0xffff_ffff_8100_0020);
/// ```
#[derive(Clone, Copy)]
pub struct Trace<'b, M: Mode> {
    /// Of the records alone: a whole number of them.
    words: Words<'b>,
    mode: M,
    /// The count word as it was read.
    count: u64,
    capacity: usize,
}

/// Whether a trace has all that was executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Completeness {
    /// There was room for every record.
    Complete,
    /// The buffer is full. The kernels drop what does not fit without counting it, so records may be
    /// missing. A larger buffer, or a reset before each system call, avoids it.
    Truncated,
    /// The count word is more than the buffer can hold, which no driver stores: the target or
    /// another process wrote to the buffer. There are no records, as none can be told from those of
    /// an earlier session.
    Corrupt {
        /// The count word, in records.
        count: u64,
    },
}

impl<'b, M: Mode> Trace<'b, M> {
    /// Reads the count word of a buffer.
    #[inline]
    pub(crate) fn freeze(buffer: Buffer<'b>, mode: M) -> Trace<'b, M> {
        let kind = mode.kind(SEAL);
        let (width, capacity) = (kind.width(buffer.width()), kind.capacity(buffer));
        let count = buffer.count(width);
        let len = usize::try_from(count).ok().filter(|len| *len <= capacity).unwrap_or(0);
        let words = buffer.words(width).skip(1).first(len * kind.stride());
        Trace { words, mode, count, capacity }
    }

    /// Reads a buffer that came by another way than a [`Device`](crate::Device) of this process,
    /// for example through shared memory or from a file: the first word is the count, the records
    /// follow. Words are 64 bits.
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

    /// Whether there is no record.
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
        match self.count.cmp(&(self.capacity as u64)) {
            core::cmp::Ordering::Less => Completeness::Complete,
            core::cmp::Ordering::Equal => Completeness::Truncated,
            core::cmp::Ordering::Greater => Completeness::Corrupt { count: self.count },
        }
    }

    /// Whether the buffer is full: [`Completeness::Truncated`].
    #[inline]
    pub fn is_truncated(&self) -> bool {
        self.completeness() == Completeness::Truncated
    }

    /// The words of the records as they lie in the buffer, without the count word: one word for a
    /// program counter, four for a comparison. Everything here that reads records reads these.
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
    pub fn iter(&self) -> Iter<'b, M> {
        Iter { words: self.words, mode: self.mode }
    }

    /// The records from `start` on.
    #[cfg(feature = "std")]
    pub(crate) fn since(self, start: usize) -> Trace<'b, M> {
        Trace { words: self.words.skip(start.saturating_mul(stride(self.mode))), ..self }
    }
}

/// Words of a record.
#[inline]
fn stride(mode: impl Mode) -> usize {
    mode.kind(SEAL).stride()
}

impl<M: Mode> fmt::Debug for Trace<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trace")
            .field("mode", &self.mode)
            .field("len", &self.len())
            .field("capacity", &self.capacity)
            .field("completeness", &self.completeness())
            .finish_non_exhaustive()
    }
}

impl<'b, M: Mode> IntoIterator for Trace<'b, M> {
    type Item = M::Record;
    type IntoIter = Iter<'b, M>;

    #[inline]
    fn into_iter(self) -> Iter<'b, M> {
        self.iter()
    }
}

impl<'b, M: Mode> IntoIterator for &Trace<'b, M> {
    type Item = M::Record;
    type IntoIter = Iter<'b, M>;

    #[inline]
    fn into_iter(self) -> Iter<'b, M> {
        self.iter()
    }
}

/// Iterator over the records of a [`Trace`].
#[derive(Clone, Debug)]
pub struct Iter<'b, M: Mode> {
    /// Of the records that are left: a whole number of them.
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
