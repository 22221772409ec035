//! Records with a type.

use crate::buffer::Words;
use crate::mode::{Kind, Mode, Seal};
use crate::pc::Pc;
use kcov_sys::linux::proposed::{
    KCOV_RECORDFLAG_TYPE_ENTRY, KCOV_RECORDFLAG_TYPE_EXIT, KCOV_RECORDFLAG_TYPE_NORMAL,
    KCOV_RECORDFLAG_TYPEMASK, KCOV_TRACE_PC_EXT,
};

/// Collects the program counter of each basic block and of each function's exits. Each record has a
/// type. One word per record.
///
/// # References
///
/// "kcov: introduce extended PC coverage collection mode", Jann Horn, 2026-03-11 and 2026-03-18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_PC_EXT")]
pub struct TracePcExt(pub(super) ());

pub(super) const KIND: Kind =
    Kind { wide: false, linux: KCOV_TRACE_PC_EXT, netbsd: None, remote: true };

impl Mode for TracePcExt {
    type Record = ExtendedPc;

    #[inline]
    fn kind(self, _: Seal) -> Kind {
        KIND
    }

    #[inline]
    fn decode(self, words: Words<'_>, _: Seal) -> Option<ExtendedPc> {
        words.get(0).map(ExtendedPc::from_word)
    }
}

/// The type of an extended record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// A basic block that is not the first of its function.
    Normal,
    /// The first basic block of a function.
    Entry,
    /// A function is about to return.
    Exit,
    /// Any other type: the four type bits as a number from 0 to 15.
    Unknown(u8),
}

/// A record of mode [`TracePcExt`]: a program counter and the type of the event there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ExtendedPc(u64);

impl ExtendedPc {
    /// Wraps a recorded word. Accepts all words.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u64) -> ExtendedPc {
        ExtendedPc(word)
    }

    /// The word, as recorded.
    #[inline]
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// The type of the event.
    #[inline]
    #[must_use]
    #[doc(alias = "KCOV_RECORDFLAG_TYPEMASK")]
    pub const fn kind(self) -> RecordKind {
        match self.0 & KCOV_RECORDFLAG_TYPEMASK {
            KCOV_RECORDFLAG_TYPE_NORMAL => RecordKind::Normal,
            KCOV_RECORDFLAG_TYPE_ENTRY => RecordKind::Entry,
            KCOV_RECORDFLAG_TYPE_EXIT => RecordKind::Exit,
            other => RecordKind::Unknown((other >> 60) as u8),
        }
    }

    /// The program counter: the record's 56 address bits, sign-extended. The top bit of these is
    /// set in kernel addresses on machines whose address space has two halves, and clear under
    /// User-Mode Linux.
    #[inline]
    #[must_use]
    #[doc(alias = "KCOV_RECORD_IP_MASK")]
    pub const fn pc(self) -> Pc {
        Pc::new(((self.0 << 8) as i64 >> 8) as u64)
    }
}
