//! What to collect, as types: each mode has its own type of record, so a buffer of one mode cannot
//! be read as that of another.

use crate::buffer::{Buffer, Width};
use crate::pc::Pc;
use crate::proposed::{TracePcExt, UniqCmp, UniqPc};
use crate::record::{AnyRecord, Comparison};
use core::convert::Infallible;
use core::fmt;
use kcov_sys::linux::KCOV_WORDS_PER_CMP;

/// A tracing mode. Sealed: the kernels define the modes.
pub trait Mode: sealed::Layout {
    /// What a session in this mode yields.
    type Record: Copy + fmt::Debug + Send + Sync + 'static;

    /// The mode as a value.
    fn any(self) -> AnyMode;

    /// Decodes record `index` of the buffer.
    ///
    /// # Safety
    ///
    /// `index` is less than the mode's capacity for that buffer.
    #[doc(hidden)]
    unsafe fn load(self, buffer: sealed::View<'_>, index: usize) -> Self::Record;
}

pub(crate) mod sealed {
    use super::{Buffer, Width};
    use core::fmt;

    /// Keeps [`Buffer`] private while it stands in a hidden method of a public trait.
    #[derive(Clone, Copy, Debug)]
    pub struct View<'b>(pub(crate) Buffer<'b>);

    /// Where a mode keeps its count and its records.
    pub trait Layout: Copy + fmt::Debug + Send + Sync + 'static {
        /// Words of a record.
        #[doc(hidden)]
        fn stride(self) -> usize;

        /// Whether all words of the mode are 64 bits even where the kernel's word is not.
        #[doc(hidden)]
        fn is_wide(self) -> bool;
    }

    /// The width of the words that the mode writes.
    pub(crate) fn width(mode: impl Layout, kernel: Width) -> Width {
        if mode.is_wide() { Width::W64 } else { kernel }
    }

    /// Records that fit into `bytes` bytes behind the count word.
    pub(crate) fn capacity(mode: impl Layout, kernel: Width, bytes: usize) -> usize {
        let words = bytes / width(mode, kernel).bytes();
        words.saturating_sub(1).checked_div(mode.stride()).unwrap_or(0)
    }

    /// Bytes that hold `records` records behind the count word.
    #[cfg(feature = "std")]
    pub(crate) fn bytes(mode: impl Layout, kernel: Width, records: u64) -> u64 {
        let words = records.saturating_mul(mode.stride() as u64).saturating_add(1);
        words.saturating_mul(width(mode, kernel).bytes() as u64)
    }
}

/// Collects the program counter of each basic block: one word a record.
///
/// # Platforms
///
/// `KCOV_TRACE_PC` on Linux, `KCOV_MODE_TRACE_PC` on NetBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_PC")]
#[doc(alias = "KCOV_MODE_TRACE_PC")]
pub struct TracePc;

impl sealed::Layout for TracePc {
    #[inline]
    fn stride(self) -> usize {
        1
    }

    #[inline]
    fn is_wide(self) -> bool {
        false
    }
}

impl Mode for TracePc {
    type Record = Pc;

    #[inline]
    fn any(self) -> AnyMode {
        AnyMode::TracePc
    }

    #[inline]
    unsafe fn load(self, sealed::View(buffer): sealed::View<'_>, index: usize) -> Pc {
        Pc::new(match buffer.width() {
            // SAFETY: the record lies within the buffer, by the caller's duty and `capacity`.
            Width::W64 => unsafe { buffer.load64(1 + index) },
            // SAFETY: as above, in words of 32 bits.
            Width::W32 => unsafe { buffer.load32(1 + index) }.into(),
        })
    }
}

/// Collects the operands of comparisons and `switch` statements: four words of 64 bits a record.
///
/// # Platforms
///
/// `KCOV_TRACE_CMP` on Linux, where the kernel needs `CONFIG_KCOV_ENABLE_COMPARISONS`;
/// `KCOV_MODE_TRACE_CMP` on NetBSD.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_CMP")]
#[doc(alias = "KCOV_MODE_TRACE_CMP")]
pub struct TraceCmp;

impl sealed::Layout for TraceCmp {
    #[inline]
    fn stride(self) -> usize {
        KCOV_WORDS_PER_CMP
    }

    #[inline]
    fn is_wide(self) -> bool {
        true
    }
}

impl Mode for TraceCmp {
    type Record = Comparison;

    #[inline]
    fn any(self) -> AnyMode {
        AnyMode::TraceCmp
    }

    #[inline]
    unsafe fn load(self, sealed::View(buffer): sealed::View<'_>, index: usize) -> Comparison {
        let word = 1 + index * KCOV_WORDS_PER_CMP;
        // SAFETY: all four words lie within the buffer, by the caller's duty and `capacity`.
        Comparison::from_words([0, 1, 2, 3].map(|i| unsafe { buffer.load64(word + i) }))
    }
}

/// Binds the thread to the device and records nothing.
///
/// # Platforms
///
/// `KCOV_MODE_NONE` on NetBSD, where it serves to test the device. Linux has no such mode:
/// enabling it fails with
/// [`ModeNotSupported`](crate::ErrorKind::ModeNotSupported).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_MODE_NONE")]
pub struct TraceNone;

impl sealed::Layout for TraceNone {
    #[inline]
    fn stride(self) -> usize {
        0
    }

    #[inline]
    fn is_wide(self) -> bool {
        false
    }
}

impl Mode for TraceNone {
    type Record = Infallible;

    #[inline]
    fn any(self) -> AnyMode {
        AnyMode::TraceNone
    }

    unsafe fn load(self, _: sealed::View<'_>, _: usize) -> Infallible {
        unreachable!("the capacity of this mode is 0")
    }
}

/// A mode chosen at run time. Its sessions yield [`AnyRecord`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyMode {
    /// [`TraceNone`]
    TraceNone,
    /// [`TracePc`]
    TracePc,
    /// [`TraceCmp`]
    TraceCmp,
    /// [`TracePcExt`], which is proposed
    TracePcExt(TracePcExt),
    /// [`UniqPc`], which is proposed
    UniqPc(UniqPc),
    /// [`UniqCmp`], which is proposed
    UniqCmp(UniqCmp),
}

impl AnyMode {
    /// All modes of released kernels that this crate knows.
    pub const ALL: &[AnyMode] = &[AnyMode::TraceNone, AnyMode::TracePc, AnyMode::TraceCmp];
}

impl sealed::Layout for AnyMode {
    #[inline]
    fn stride(self) -> usize {
        match self {
            AnyMode::TraceNone => TraceNone.stride(),
            AnyMode::TracePc => TracePc.stride(),
            AnyMode::TraceCmp => TraceCmp.stride(),
            AnyMode::TracePcExt(mode) => mode.stride(),
            AnyMode::UniqPc(mode) => mode.stride(),
            AnyMode::UniqCmp(mode) => mode.stride(),
        }
    }

    #[inline]
    fn is_wide(self) -> bool {
        match self {
            AnyMode::TraceNone => TraceNone.is_wide(),
            AnyMode::TracePc => TracePc.is_wide(),
            AnyMode::TraceCmp => TraceCmp.is_wide(),
            AnyMode::TracePcExt(mode) => mode.is_wide(),
            AnyMode::UniqPc(mode) => mode.is_wide(),
            AnyMode::UniqCmp(mode) => mode.is_wide(),
        }
    }
}

impl Mode for AnyMode {
    type Record = AnyRecord;

    #[inline]
    fn any(self) -> AnyMode {
        self
    }

    #[inline]
    unsafe fn load(self, view: sealed::View<'_>, index: usize) -> AnyRecord {
        match self {
            AnyMode::TraceNone => unreachable!("the capacity of this mode is 0"),
            // SAFETY: the duty is passed on to the caller.
            AnyMode::TracePc => AnyRecord::Pc(unsafe { TracePc.load(view, index) }),
            // SAFETY: as above.
            AnyMode::TraceCmp => AnyRecord::Comparison(unsafe { TraceCmp.load(view, index) }),
            // SAFETY: as above.
            AnyMode::TracePcExt(mode) => AnyRecord::ExtendedPc(unsafe { mode.load(view, index) }),
            // SAFETY: as above.
            AnyMode::UniqPc(mode) => AnyRecord::Pc(unsafe { mode.load(view, index) }),
            // SAFETY: as above.
            AnyMode::UniqCmp(mode) => AnyRecord::Comparison(unsafe { mode.load(view, index) }),
        }
    }
}

impl fmt::Display for AnyMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            AnyMode::TraceNone => "none",
            AnyMode::TracePc => "PC",
            AnyMode::TraceCmp => "CMP",
            AnyMode::TracePcExt(_) => "PC_EXT",
            AnyMode::UniqPc(_) => "UNIQ_PC",
            AnyMode::UniqCmp(_) => "UNIQ_CMP",
        })
    }
}
