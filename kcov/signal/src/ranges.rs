//! Address ranges of the kernel's text and of modules.

use alloc::vec::Vec;
use core::fmt;
use core::ops::Range;

/// Sorted address ranges without overlaps.
///
/// For a Linux kernel, pass the range from `_stext` to `_etext` of the linked `vmlinux`, and the
/// text of each module minus the KASLR offset. A [`Pc`](kcov::Pc) has these addresses.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Ranges(Vec<Range<u64>>);

/// Why ranges cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RangesError {
    /// A range ends before it starts.
    Reversed(Range<u64>),
    /// Together the ranges have this many bytes, which is more than [`Ranges::MAX_BYTES`].
    TooLarge(u64),
}

impl fmt::Display for RangesError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RangesError::Reversed(range) => write!(
                f,
                "cannot use the address range {:#x}..{:#x}: it ends before it starts; swap the \
                 bounds",
                range.start, range.end
            ),
            RangesError::TooLarge(bytes) => write!(
                f,
                "cannot use address ranges of {bytes} bytes: the maximum is {}; pass only the text \
                 of the kernel and of its modules, not the gaps between them",
                Ranges::MAX_BYTES
            ),
        }
    }
}

impl core::error::Error for RangesError {}

impl Ranges {
    /// The maximum total size of ranges, in bytes.
    pub const MAX_BYTES: u64 = 1 << 30;

    /// Takes one range. Its end is exclusive. Allocates.
    ///
    /// # Errors
    ///
    /// Same as [`new`](Self::new).
    pub fn single(range: Range<u64>) -> Result<Ranges, RangesError> {
        Ranges::new(core::iter::once(range))
    }

    /// Sorts ranges of addresses, and joins ranges that overlap or are adjacent. Ends are exclusive.
    /// The last 64 bytes of the address space are left out: no kernel has text there. Allocates.
    ///
    /// # Errors
    ///
    /// - [`Reversed`](RangesError::Reversed): a range ends before it starts.
    /// - [`TooLarge`](RangesError::TooLarge): the ranges have more than
    ///   [`MAX_BYTES`](Self::MAX_BYTES) together.
    pub fn new(ranges: impl IntoIterator<Item = Range<u64>>) -> Result<Ranges, RangesError> {
        let mut given: Vec<Range<u64>> = Vec::new();
        for Range { start, end } in ranges {
            if end < start {
                return Err(RangesError::Reversed(start..end));
            }
            let end = end.min(LAST_WORD);
            if start < end {
                given.push(start..end);
            }
        }
        given.sort_unstable_by_key(|range| range.start);
        let mut joined = Ranges::default();
        for range in given {
            match joined.0.last_mut() {
                Some(last) if range.start <= last.end => last.end = last.end.max(range.end),
                _ => joined.0.push(range),
            }
        }
        let bytes = joined.bytes();
        // Widened to whole words, the ranges must still fit in 32 bits.
        let widened = bytes.saturating_add(2 * WORD * joined.0.len() as u64);
        if bytes > Ranges::MAX_BYTES || widened > u64::from(u32::MAX) {
            return Err(RangesError::TooLarge(bytes));
        }
        Ok(joined)
    }

    fn bytes(&self) -> u64 {
        self.0.iter().fold(0, |sum, range| sum.saturating_add(range.end - range.start))
    }

    /// Whether an address is in one of the ranges.
    #[inline]
    #[must_use]
    pub fn contains(&self, address: u64) -> bool {
        let after = self.0.partition_point(|range| range.start <= address);
        after > 0 && address < self.0[after - 1].end
    }

    /// The ranges, in ascending order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Range<u64>> + '_ {
        self.0.iter().cloned()
    }

    /// Whether there are no ranges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Shows the first and the last address, not each range: there may be thousands.
impl fmt::Debug for Ranges {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let addresses = match &self.0[..] {
            [first, .., last] => first.start..last.end,
            [only] => only.clone(),
            [] => 0..0,
        };
        f.debug_struct("Ranges")
            .field("len", &self.0.len())
            .field("bytes", &self.bytes())
            .field("addresses", &format_args!("{:#x}..{:#x}", addresses.start, addresses.end))
            .finish()
    }
}

/// Bytes of text per word of a map. Ranges are widened to whole words.
pub(crate) const WORD: u64 = 64;

/// The last word of the address space. It has no exclusive end, so no range includes it.
const LAST_WORD: u64 = u64::MAX / WORD * WORD;

/// Maps addresses to offsets in the concatenation of the ranges, widened to whole words.
#[derive(Clone)]
pub(crate) struct Index {
    spans: Vec<Span>,
    /// The largest span, which is checked first. Empty if there is none.
    largest: Span,
    bytes: u64,
}

#[derive(Clone, Copy, Default)]
pub(crate) struct Span {
    pub(crate) start: u64,
    pub(crate) bytes: u64,
    /// The offset of `start`.
    pub(crate) offset: u64,
}

impl Index {
    pub(crate) fn new(ranges: &Ranges) -> Index {
        let mut spans: Vec<Span> = Vec::new();
        for range in &ranges.0 {
            let start = range.start / WORD * WORD;
            let end = range.end.next_multiple_of(WORD);
            match spans.last_mut() {
                Some(last) if start <= last.start + last.bytes => {
                    last.bytes = end.max(last.start + last.bytes) - last.start;
                }
                _ => spans.push(Span { start, bytes: end - start, offset: 0 }),
            }
        }
        let mut bytes = 0;
        for span in &mut spans {
            span.offset = bytes;
            bytes += span.bytes;
        }
        let largest = spans.iter().copied().max_by_key(|span| span.bytes).unwrap_or_default();
        Index { spans, largest, bytes }
    }

    /// Total size of the spans in bytes. Less than 2^32: widening adds less than two words per
    /// range.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    #[inline]
    pub(crate) fn largest(&self) -> Span {
        self.largest
    }

    /// The offset of an address, if it is in a span. Less than [`bytes`](Self::bytes).
    #[inline]
    pub(crate) fn offset(&self, address: u64) -> Option<u32> {
        let in_largest = address.wrapping_sub(self.largest.start);
        if in_largest < self.largest.bytes {
            return Some((self.largest.offset + in_largest) as u32);
        }
        let after = self.spans.partition_point(|span| span.start <= address);
        let span = self.spans.get(after.checked_sub(1)?)?;
        let offset = address - span.start;
        (offset < span.bytes).then_some((span.offset + offset) as u32)
    }

    /// The address of an offset less than [`bytes`](Self::bytes).
    pub(crate) fn address(&self, offset: u64) -> u64 {
        let after = self.spans.partition_point(|span| span.offset <= offset);
        let span = &self.spans[after - 1];
        span.start + (offset - span.offset)
    }
}
