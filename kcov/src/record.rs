//! Decoding of records. Accepts any words.

use crate::pc::{Address, Pc};
use core::fmt;
use kcov_sys::linux::{KCOV_CMP_CONST, KCOV_CMP_MASK};

/// One comparison that the kernel executed, from a session in mode
/// [`TraceCmp`](crate::mode::TraceCmp). A `switch` statement records one for each case.
///
/// # References
///
/// kcov.rst, "Comparison operands collection"; kcov(4), `KCOV_MODE_TRACE_CMP`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Comparison {
    kind: Type,
    first: Address,
    second: Address,
    pc: Pc,
}

impl Comparison {
    /// Decodes the four words of a record: type, first operand, second operand, PC.
    ///
    /// Accepts all words. A newer kernel may set more bits of [`raw_type`](Self::raw_type).
    #[inline]
    pub const fn from_words([kind, first, second, pc]: [u64; 4]) -> Comparison {
        let (first, second) = (Address(first), Address(second));
        Comparison { kind: Type(kind), first, second, pc: Pc::new(pc) }
    }

    /// The four words of the record.
    #[cfg(feature = "fake")]
    pub(crate) const fn words(self) -> [u64; 4] {
        [self.kind.0, self.first.0, self.second.0, self.pc.address()]
    }

    /// The program counter of the comparison.
    #[inline]
    #[doc(alias = "ip")]
    pub const fn pc(self) -> Pc {
        self.pc
    }

    /// The two operands in record order, zero-extended from [`operand_size`](Self::operand_size)
    /// bytes.
    ///
    /// If [`is_const`](Self::is_const), the first operand is the constant. For a `switch`, the
    /// first is the case value and the second the value under test. Compilers may sign-extend a
    /// negative case value: truncate it to the operand size before you compare it with the second
    /// operand.
    #[inline]
    #[doc(alias = "arg1")]
    #[doc(alias = "arg2")]
    pub const fn operands(self) -> (u64, u64) {
        (self.first.0, self.second.0)
    }

    /// Size of each operand in bytes: 1, 2, 4 or 8.
    #[inline]
    #[doc(alias = "KCOV_CMP_SIZE")]
    pub const fn operand_size(self) -> usize {
        1 << ((self.kind.0 & KCOV_CMP_MASK) >> 1)
    }

    /// Whether the first operand is a compile-time constant.
    #[inline]
    #[doc(alias = "KCOV_CMP_CONST")]
    pub const fn is_const(self) -> bool {
        self.kind.0 & KCOV_CMP_CONST != 0
    }

    /// The type word, as recorded. Known kernels set only the constant flag and the size.
    #[inline]
    pub const fn raw_type(self) -> u64 {
        self.kind.0
    }
}

/// The type word, shown as what it says.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Type(u64);

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let constant = if self.0 & KCOV_CMP_CONST != 0 { " const" } else { "" };
        write!(f, "{} bytes{constant}", 1 << ((self.0 & KCOV_CMP_MASK) >> 1))
    }
}

/// A record from a session with a run-time mode, [`AnyMode`](crate::mode::AnyMode).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AnyRecord {
    /// From mode [`TracePc`](crate::mode::TracePc).
    Pc(Pc),
    /// From mode [`TraceCmp`](crate::mode::TraceCmp).
    Comparison(Comparison),
}

impl AnyRecord {
    /// The program counter of the record.
    #[inline]
    pub const fn pc(self) -> Pc {
        match self {
            AnyRecord::Pc(pc) => pc,
            AnyRecord::Comparison(comparison) => comparison.pc(),
        }
    }
}
