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

#[cfg(test)]
mod tests;
