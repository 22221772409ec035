//! Sizes of buffers, in whatever unit the caller thinks.

use crate::buffer::Width;
use crate::error::{Error, ErrorKind, Operation};
use crate::mode::{AnyMode, Mode, sealed};
use crate::sys;
use std::ops::RangeInclusive;

/// How large a buffer to ask for.
///
/// The device rounds up to whole pages, as Linux can only map such buffers, and refuses a size
/// beyond the system's limit unless it was [clamped](Self::clamped). The result is what
/// [`Device::words`](crate::Device::words) and [`Device::capacity`](crate::Device::capacity) say.
///
/// The default is 262144 words (2 MiB), NetBSD's limit; whole programs of system calls are known
/// to overflow smaller ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BufferSize {
    amount: Amount,
    clamp: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Amount {
    Words(u64),
    Records(u64, AnyMode),
}

impl BufferSize {
    /// This many words, the count word included. A word is the kernel's `unsigned long` on Linux
    /// and 64 bits on NetBSD.
    #[must_use]
    pub const fn words(words: u64) -> BufferSize {
        BufferSize { amount: Amount::Words(words), clamp: false }
    }

    /// Room for this many records of a mode.
    #[must_use]
    pub fn records<M: Mode>(records: u64, mode: M) -> BufferSize {
        BufferSize { amount: Amount::Records(records, mode.any()), clamp: false }
    }

    /// Takes the largest buffer that the system allows where this size is beyond it.
    #[must_use]
    pub const fn clamped(self) -> BufferSize {
        BufferSize { clamp: true, ..self }
    }

    /// The number of words to ask a kernel for whose words have this width.
    pub(crate) fn words_for(self, width: Width) -> Result<u64, Error> {
        let word = width.bytes() as u64;
        let asked = match self.amount {
            Amount::Words(words) => words,
            Amount::Records(records, mode) => sealed::bytes(mode, width, records).div_ceil(word),
        };
        let limits = page_limits(width);
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

impl Default for BufferSize {
    fn default() -> BufferSize {
        BufferSize::words(256 << 10)
    }
}

/// Sizes in words that the system accepts and that fill whole pages: the least and the greatest.
///
/// # Platforms
///
/// Linux takes up to `INT_MAX / sizeof(long)` words, NetBSD 262144. A 32-bit program under Linux
/// gets the limits of a 64-bit kernel.
#[must_use]
pub fn limits() -> RangeInclusive<u64> {
    page_limits(sys::WIDTHS[0])
}

fn page_limits(width: Width) -> RangeInclusive<u64> {
    let (least, greatest) = sys::limits(width);
    let page = sys::page_size() as u64 / width.bytes() as u64;
    least.next_multiple_of(page)..=greatest - greatest % page
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use crate::mode::{TraceCmp, TracePc};

    const PAGE: u64 = 4096;

    fn words(size: BufferSize, width: Width) -> u64 {
        assert_eq!(sys::page_size() as u64, PAGE, "the expectations below are for this page size");
        size.words_for(width).unwrap()
    }

    #[test]
    fn sizes_are_whole_pages() {
        for (asked, given) in [(0, 512), (1, 512), (512, 512), (513, 1024), (65536, 65536)] {
            assert_eq!(words(BufferSize::words(asked), Width::W64), given);
        }
        assert_eq!(words(BufferSize::words(513), Width::W32), 1024);
        assert_eq!(words(BufferSize::words(1025), Width::W32), 2048);
    }

    #[test]
    fn records_count_the_count_word_and_the_stride() {
        assert_eq!(words(BufferSize::records(511, TracePc), Width::W64), 512);
        assert_eq!(words(BufferSize::records(512, TracePc), Width::W64), 1024);
        assert_eq!(words(BufferSize::records(127, TraceCmp), Width::W64), 512);
        assert_eq!(words(BufferSize::records(128, TraceCmp), Width::W64), 1024);
        // 8 + 127 * 32 bytes are 1018 words of 32 bits.
        assert_eq!(words(BufferSize::records(127, TraceCmp), Width::W32), 1024);
    }

    #[test]
    fn a_size_over_the_limit_is_refused_with_the_limit_or_clamped() {
        let over = limits().end() + 1;
        let error = BufferSize::words(over).words_for(Width::W64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::SizeOutOfLimits);
        insta::assert_snapshot!(error.to_string());
        for size in [BufferSize::words(over), BufferSize::words(u64::MAX)] {
            assert_eq!(words(size.clamped(), Width::W64), *limits().end());
        }
        let records = BufferSize::records(u64::MAX, TraceCmp);
        assert_eq!(records.words_for(Width::W64).unwrap_err().kind(), ErrorKind::SizeOutOfLimits);
        assert_eq!(words(records.clamped(), Width::W64), *limits().end());
    }

    #[test]
    fn limits_are_whole_pages_within_those_of_the_driver() {
        assert_eq!(limits(), 512..=0x0fff_fe00);
        assert_eq!(page_limits(Width::W32), 1024..=0x1fff_fc00);
    }
}
