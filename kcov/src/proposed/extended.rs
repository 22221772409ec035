//! Records that say what they are.

use crate::buffer::Words;
use crate::mode::{Kind, Mode, Seal};
use crate::pc::Pc;
use kcov_sys::linux::proposed::{
    KCOV_RECORDFLAG_TYPE_ENTRY, KCOV_RECORDFLAG_TYPE_EXIT, KCOV_RECORDFLAG_TYPE_NORMAL,
    KCOV_RECORDFLAG_TYPEMASK,
};

/// Collects the program counter of each basic block, and of each function's exits; each record says
/// what it is. One word a record.
///
/// # References
///
/// "kcov: introduce extended PC coverage collection mode", Jann Horn, 2026-03-11 and 2026-03-18.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_PC_EXT")]
pub struct TracePcExt(pub(super) ());

impl Mode for TracePcExt {
    type Record = ExtendedPc;

    #[inline]
    fn kind(self, _: Seal) -> Kind {
        Kind::PcExt
    }

    #[inline]
    fn decode(self, words: Words<'_>, _: Seal) -> Option<ExtendedPc> {
        words.get(0).map(ExtendedPc::from_word)
    }
}

/// What an extended record tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RecordKind {
    /// A basic block that is not the first of its function.
    Normal,
    /// The first basic block of a function.
    Entry,
    /// A function is about to return.
    Exit,
    /// None of these: the four type bits, as a number from 0 to 15.
    Unknown(u8),
}

/// A record of mode [`TracePcExt`]: a program counter, and what happened there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(transparent)]
pub struct ExtendedPc(u64);

impl ExtendedPc {
    /// Takes a word as recorded. All words are accepted.
    #[inline]
    #[must_use]
    pub const fn from_word(word: u64) -> ExtendedPc {
        ExtendedPc(word)
    }

    /// The word as recorded.
    #[inline]
    #[must_use]
    pub const fn word(self) -> u64 {
        self.0
    }

    /// What happened.
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

    /// Where: the 56 bits of the address that the record has, with the others like the highest of
    /// them. That is the kernel's half of the address space where this bit is set, as it is on all
    /// machines that have two halves, and User-Mode Linux's addresses where it is not.
    #[inline]
    #[must_use]
    #[doc(alias = "KCOV_RECORD_IP_MASK")]
    pub const fn pc(self) -> Pc {
        Pc::new(((self.0 << 8) as i64 >> 8) as u64)
    }
}
