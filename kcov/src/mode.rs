//! Tracing modes as types: each mode has its own record type, so a buffer cannot be read in another
//! mode than it was filled in.

use crate::buffer::{Buffer, Slice, Width, Words};
use crate::pc::Pc;
use crate::record::{AnyRecord, Comparison};
use core::fmt;
use core::sync::atomic::Ordering;
use kcov_sys::{linux, netbsd};

/// A tracing mode: [`TracePc`], [`TraceCmp`], or [`AnyMode`], which is chosen at run time.
///
/// Sealed, because the kernels define the modes.
pub trait Mode: Copy + fmt::Debug + Send + Sync + 'static {
    /// The record type of sessions in this mode.
    type Record: Copy + fmt::Debug + PartialEq + Send + Sync + 'static;

    /// Identifies the mode.
    #[doc(hidden)]
    fn kind(self, seal: sealed::Seal) -> sealed::Kind;

    /// Decodes the record at the start of the words. `None` if there are too few.
    #[doc(hidden)]
    fn decode(self, words: Words<'_>, seal: sealed::Seal) -> Option<Self::Record>;
}

#[cfg(any(feature = "std", feature = "proposed"))]
pub(crate) use sealed::Seal;
pub(crate) use sealed::{Kind, SEAL};

mod sealed {
    /// Only this crate can name or construct it, so only this crate can call methods that take it.
    #[derive(Clone, Copy, Debug)]
    pub struct Seal(());

    pub(crate) const SEAL: Seal = Seal(());

    /// What distinguishes a mode.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Kind {
        /// Whether a record has four words, of 64 bits even under a kernel with narrower words, as
        /// a comparison has. Other records have one word.
        pub(crate) wide: bool,
        /// The mode's number on Linux, and on NetBSD if it has the mode.
        pub(crate) linux: u32,
        pub(crate) netbsd: Option<u32>,
        /// Whether it collects remote coverage too.
        pub(crate) remote: bool,
    }
}

const PC: Kind = Kind {
    wide: false,
    linux: linux::KCOV_TRACE_PC,
    netbsd: Some(netbsd::KCOV_MODE_TRACE_PC as u32),
    remote: true,
};

const CMP: Kind = Kind {
    wide: true,
    linux: linux::KCOV_TRACE_CMP,
    netbsd: Some(netbsd::KCOV_MODE_TRACE_CMP as u32),
    remote: true,
};

impl Kind {
    /// Words per record, at least 1.
    #[inline]
    pub(crate) const fn stride(self) -> usize {
        if self.wide { linux::KCOV_WORDS_PER_CMP } else { 1 }
    }

    /// Width of the words in this mode.
    #[inline]
    pub(crate) const fn width(self, kernel: Width) -> Width {
        if self.wide { Width::W64 } else { kernel }
    }

    /// Number of records that fit after the count word.
    #[inline]
    pub(crate) fn capacity(self, buffer: Buffer<'_>) -> usize {
        (buffer.bytes() / self.width(buffer.width()).bytes()).saturating_sub(1) / self.stride()
    }

    /// Bytes for `records` records and the count word.
    #[cfg(feature = "std")]
    pub(crate) const fn bytes(self, kernel: Width, records: u64) -> u64 {
        let words = records.saturating_mul(self.stride() as u64).saturating_add(1);
        words.saturating_mul(self.width(kernel).bytes() as u64)
    }
}

/// Collects the program counter of each basic block: one word per record.
///
/// # Platforms
///
/// `KCOV_TRACE_PC` on Linux, `KCOV_MODE_TRACE_PC` on NetBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_PC")]
#[doc(alias = "KCOV_MODE_TRACE_PC")]
pub struct TracePc;

impl Mode for TracePc {
    type Record = Pc;

    #[inline]
    fn kind(self, _: sealed::Seal) -> Kind {
        PC
    }

    #[inline]
    fn decode(self, words: Words<'_>, _: sealed::Seal) -> Option<Pc> {
        words.get(0).map(Pc::new)
    }
}

/// Collects the operands of comparisons and `switch` statements: four 64-bit words per record.
///
/// # Platforms
///
/// `KCOV_TRACE_CMP` on Linux, with `CONFIG_KCOV_ENABLE_COMPARISONS=y`; `KCOV_MODE_TRACE_CMP` on
/// NetBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_CMP")]
#[doc(alias = "KCOV_MODE_TRACE_CMP")]
pub struct TraceCmp;

impl Mode for TraceCmp {
    type Record = Comparison;

    #[inline]
    fn kind(self, _: sealed::Seal) -> Kind {
        CMP
    }

    #[inline]
    fn decode(self, words: Words<'_>, _: sealed::Seal) -> Option<Comparison> {
        // Comparison mode always uses 64-bit words.
        let Slice::U64(words) = words.0 else { return None };
        let record = words.first_chunk::<{ linux::KCOV_WORDS_PER_CMP }>()?;
        Some(Comparison::from_words(record.each_ref().map(|word| word.load(Ordering::Relaxed))))
    }
}

/// A mode chosen at run time. Its sessions yield [`AnyRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyMode {
    /// [`TracePc`]
    TracePc,
    /// [`TraceCmp`]
    TraceCmp,
}

impl AnyMode {
    /// All modes of released kernels.
    pub const ALL: &[AnyMode] = &[AnyMode::TracePc, AnyMode::TraceCmp];
}

impl Mode for AnyMode {
    type Record = AnyRecord;

    #[inline]
    fn kind(self, _: sealed::Seal) -> Kind {
        match self {
            AnyMode::TracePc => PC,
            AnyMode::TraceCmp => CMP,
        }
    }

    #[inline]
    fn decode(self, words: Words<'_>, seal: sealed::Seal) -> Option<AnyRecord> {
        match self {
            AnyMode::TracePc => TracePc.decode(words, seal).map(AnyRecord::Pc),
            AnyMode::TraceCmp => TraceCmp.decode(words, seal).map(AnyRecord::Comparison),
        }
    }
}
