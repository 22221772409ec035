//! What was collected: a count that was read once, and the records that it counts.

use crate::buffer::Buffer;
use crate::mode::{Mode, sealed};
use core::iter::FusedIterator;
use core::sync::atomic::{AtomicU32, AtomicU64};

/// The words of a trace's records as they lie in the buffer.
#[derive(Clone, Copy, Debug)]
pub enum Words<'b> {
    /// Words of 64 bits.
    U64(&'b [AtomicU64]),
    /// Words of 32 bits, which kernels with 32-bit words write in PC mode.
    U32(&'b [AtomicU32]),
}

/// The records that a buffer held at one moment.
///
/// The count word was read once, when this value was made, and clamped to what the buffer can hold.
/// Nothing that the kernel or another process writes afterwards changes the number of records, and
/// no word leads to an access outside the buffer.
///
/// The records themselves are read when they are asked for. While a session is enabled, make and
/// read traces in its own thread: Linux counts a comparison before it stores it, so that another
/// thread may see the count run ahead.
#[derive(Clone, Copy, Debug)]
pub struct Trace<'b, M: Mode> {
    buffer: Buffer<'b>,
    mode: M,
    len: usize,
    capacity: usize,
}

impl<'b, M: Mode> Trace<'b, M> {
    /// Reads the count word of a buffer.
    #[inline]
    pub(crate) fn freeze(buffer: Buffer<'b>, mode: M) -> Trace<'b, M> {
        let capacity = sealed::capacity(mode, buffer.width(), buffer.bytes());
        let count = buffer.count(sealed::width(mode, buffer.width()));
        let len = usize::try_from(count).map_or(capacity, |count| count.min(capacity));
        Trace { buffer, mode, len, capacity }
    }

    /// Reads a buffer that came by another way than a [`Device`](crate::Device) of this process,
    /// for example through shared memory or from a file: the first word is the count, the records
    /// follow. Words are 64 bits.
    #[must_use]
    pub fn from_words(words: &'b [AtomicU64], mode: M) -> Trace<'b, M> {
        Trace::freeze(Buffer::from_words(words), mode)
    }

    /// The mode that the records are of.
    #[inline]
    #[must_use]
    pub fn mode(&self) -> M {
        self.mode
    }

    /// Number of records.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no record.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Number of records that the buffer can hold in this mode.
    #[inline]
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether the buffer is full.
    ///
    /// The kernels drop what does not fit without counting it, so a full buffer is all there is to
    /// see of a truncated trace. A larger buffer, or a reset before each system call, avoids it.
    #[inline]
    #[must_use]
    pub fn is_truncated(&self) -> bool {
        self.len == self.capacity && self.mode.stride() != 0
    }

    /// The record at `index`, in the order of execution.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<M::Record> {
        // SAFETY: `index < len <= capacity`.
        (index < self.len).then(|| unsafe { self.mode.load(sealed::View(self.buffer), index) })
    }

    /// The words of the records, without the count word.
    #[inline]
    #[must_use]
    pub fn words(&self) -> Words<'b> {
        let width = sealed::width(self.mode, self.buffer.width());
        // SAFETY: `len <= capacity`, which counts the records that fit behind the count word.
        unsafe { self.buffer.records(width, self.len * self.mode.stride()) }
    }

    /// The records in the order of execution.
    #[inline]
    #[must_use]
    pub fn iter(&self) -> Iter<'b, M> {
        Iter { buffer: self.buffer, mode: self.mode, next: 0, end: self.len }
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
    buffer: Buffer<'b>,
    mode: M,
    /// `next <= end`, and `end` is at most the mode's capacity for the buffer.
    next: usize,
    end: usize,
}

impl<M: Mode> Iterator for Iter<'_, M> {
    type Item = M::Record;

    #[inline]
    fn next(&mut self) -> Option<M::Record> {
        if self.next == self.end {
            return None;
        }
        // SAFETY: `next < end`, which is at most the capacity.
        let record = unsafe { self.mode.load(sealed::View(self.buffer), self.next) };
        self.next += 1;
        Some(record)
    }

    #[inline]
    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.end - self.next;
        (left, Some(left))
    }

    #[inline]
    fn nth(&mut self, n: usize) -> Option<M::Record> {
        self.next = self.next.saturating_add(n).min(self.end);
        self.next()
    }
}

impl<M: Mode> DoubleEndedIterator for Iter<'_, M> {
    #[inline]
    fn next_back(&mut self) -> Option<M::Record> {
        if self.next == self.end {
            return None;
        }
        self.end -= 1;
        // SAFETY: `end` is now less than it was, which was at most the capacity.
        Some(unsafe { self.mode.load(sealed::View(self.buffer), self.end) })
    }
}

impl<M: Mode> ExactSizeIterator for Iter<'_, M> {}
impl<M: Mode> FusedIterator for Iter<'_, M> {}
