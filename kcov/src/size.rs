//! Buffer sizes, in words or records.

use crate::buffer::Width;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{Kind, Mode, SEAL};
use crate::sys;
use crate::system::System;
use std::ops::RangeInclusive;

/// The buffer size to request.
///
/// Sizes are rounded up to whole pages, because Linux cannot map other sizes. A size over the
/// system's [`limits`](Self::limits) is refused unless it was [clamped](Self::clamped).
///
/// Without one, a device has 262144 words (2 MiB), NetBSD's limit. Programs with several system
/// calls are known to overflow smaller buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct BufferSize {
    amount: Amount,
    clamp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Words(u64),
    Records(u64, Kind),
}

impl BufferSize {
    /// This many words, including the count word. A word is the kernel's `unsigned long` on Linux
    /// and 64 bits on NetBSD.
    pub const fn words(words: u64) -> BufferSize {
        BufferSize { amount: Amount::Words(words), clamp: false }
    }

    /// Enough words for this many records in a mode.
    pub fn records<M: Mode>(records: u64, mode: M) -> BufferSize {
        BufferSize { amount: Amount::Records(records, mode.kind(SEAL)), clamp: false }
    }

    /// Falls back to the system's largest buffer if this size is over the limit.
    pub const fn clamped(self) -> BufferSize {
        BufferSize { clamp: true, ..self }
    }

    /// The minimum and maximum size in words that this system accepts and that fill whole pages.
    ///
    /// # Platforms
    ///
    /// The maximum is `INT_MAX / sizeof(long)` words on Linux; on NetBSD 262144. A 32-bit program
    /// on Linux gets the limits of a 64-bit kernel.
    pub fn limits() -> RangeInclusive<u64> {
        page_limits(sys::SYSTEM, sys::SYSTEM.widths[0])
    }

    /// The number of words to request from a kernel with words of this width.
    pub(crate) fn words_for(self, system: &System, width: Width) -> Result<u64, Error> {
        let word = width.bytes() as u64;
        let asked = match self.amount {
            Amount::Words(words) => words,
            Amount::Records(records, kind) => kind.bytes(width, records).div_ceil(word),
        };
        let limits = page_limits(system, width);
        let page = sys::page_size() as u64 / word;
        let words = asked.max(1).checked_next_multiple_of(page).unwrap_or(u64::MAX);
        if words <= *limits.end() {
            Ok(words.max(*limits.start()))
        } else if self.clamp {
            Ok(*limits.end())
        } else {
            Err(Error::new(Operation::SetSize, ErrorKind::SizeOutOfLimits)
                .with_limits(asked, limits))
        }
    }
}

fn page_limits(system: &System, width: Width) -> RangeInclusive<u64> {
    let (least, greatest) = (system.limits)(width);
    let page = sys::page_size() as u64 / width.bytes() as u64;
    least.next_multiple_of(page)..=greatest - greatest % page
}

/// Rounding and limits of sizes.
#[cfg(test)]
mod tests {
    use super::*;
    use crate::mode::{TraceCmp, TracePc};
    use crate::system::LINUX;

    fn words(size: BufferSize, width: Width) -> u64 {
        size.words_for(&LINUX, width).unwrap()
    }

    /// Number of 64-bit words in a page.
    fn page() -> u64 {
        sys::page_size() as u64 / 8
    }

    #[test]
    fn sizes_are_whole_pages() {
        let page = page();
        for (asked, pages) in [(0, 1), (1, 1), (page, 1), (page + 1, 2), (128 * page, 128)] {
            assert_eq!(words(BufferSize::words(asked), Width::W64), pages * page);
        }
        assert_eq!(words(BufferSize::words(page + 1), Width::W32), 2 * page);
        assert_eq!(words(BufferSize::words(2 * page + 1), Width::W32), 4 * page);
    }

    #[test]
    fn records_count_the_count_word_and_the_stride() {
        let page = page();
        assert_eq!(words(BufferSize::records(page - 1, TracePc), Width::W64), page);
        assert_eq!(words(BufferSize::records(page, TracePc), Width::W64), 2 * page);
        let most = (page - 1) / 4;
        assert_eq!(words(BufferSize::records(most, TraceCmp), Width::W64), page);
        assert_eq!(words(BufferSize::records(most + 1, TraceCmp), Width::W64), 2 * page);
        assert_eq!(words(BufferSize::records(most, TraceCmp), Width::W32), 2 * page);
    }

    #[test]
    fn a_size_over_the_limit_is_refused_with_the_limit_or_clamped() {
        let limits = page_limits(&LINUX, Width::W64);
        let over = limits.end() + 1;
        let error = BufferSize::words(over).words_for(&LINUX, Width::W64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
        assert_eq!(error.limits().cloned(), Some(limits.clone()));
        let text = format!(
            "cannot set the size of the kcov buffer: the size is out of limits ({over} words asked \
             for, {} to {} words allowed)",
            limits.start(),
            limits.end()
        );
        assert_eq!(error.to_string(), text);
        for size in [BufferSize::words(over), BufferSize::words(u64::MAX)] {
            assert_eq!(words(size.clamped(), Width::W64), *limits.end());
        }
        let records = BufferSize::records(u64::MAX, TraceCmp);
        let error = records.words_for(&LINUX, Width::W64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
        assert_eq!(words(records.clamped(), Width::W64), *limits.end());
    }

    #[test]
    fn limits_are_whole_pages_within_those_of_the_driver() {
        let most = |words: u64, page: u64| words - words % page;
        assert_eq!(page_limits(&LINUX, Width::W64), page()..=most(0x0fff_ffff, page()));
        assert_eq!(page_limits(&LINUX, Width::W32), 2 * page()..=most(0x1fff_ffff, 2 * page()));
    }
}
