//! Operands of comparisons, and a filter for them.

use kcov::{Comparison, Pc};

/// The operands of a comparison, truncated to their size, and the place of the comparison.
///
/// A [`Comparison`] holds the words as recorded. A negative `switch` constant may be sign-extended
/// beyond its size there. Here both operands have [`size`](Self::size) bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operands {
    first: u64,
    second: u64,
    pc: Pc,
    size: u8,
    is_const: bool,
}

impl Operands {
    /// Truncates the operands of a record.
    #[inline]
    #[must_use]
    pub const fn new(comparison: Comparison) -> Operands {
        let size = comparison.operand_size();
        let (first, second) = comparison.operands();
        let mask = u64::MAX >> (64 - 8 * size);
        let (first, second) = (first & mask, second & mask);
        let (pc, is_const) = (comparison.pc(), comparison.is_const());
        Operands { first, second, pc, size: size as u8, is_const }
    }

    /// The program counter of the comparison, as recorded.
    #[inline]
    #[must_use]
    pub const fn pc(self) -> Pc {
        self.pc
    }

    /// The operands, zero-extended. If one is a constant, it is the first.
    #[inline]
    #[must_use]
    pub const fn unsigned(self) -> (u64, u64) {
        (self.first, self.second)
    }

    /// The operands, sign-extended.
    #[inline]
    #[must_use]
    pub const fn signed(self) -> (i64, i64) {
        (self.extend(self.first), self.extend(self.second))
    }

    const fn extend(self, operand: u64) -> i64 {
        let unused = 64 - 8 * self.size as u32;
        (operand << unused) as i64 >> unused
    }

    /// The size of each operand in bytes: 1, 2, 4 or 8.
    #[inline]
    #[must_use]
    pub const fn size(self) -> usize {
        self.size as usize
    }

    /// Whether the first operand is a compile-time constant.
    #[inline]
    #[must_use]
    pub const fn is_const(self) -> bool {
        self.is_const
    }
}

/// Leaves out comparisons that are useless to a fuzzer. A new filter leaves out none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use]
pub struct CmpFilter {
    equal: bool,
    zero: bool,
    small: Option<u64>,
    variable: bool,
}

impl CmpFilter {
    /// A filter that admits every comparison.
    pub const fn new() -> CmpFilter {
        CmpFilter { equal: false, zero: false, small: None, variable: false }
    }

    /// Leaves out equal operands: the input already has the right value.
    pub const fn skip_equal(mut self) -> CmpFilter {
        self.equal = true;
        self
    }

    /// Leaves out comparisons in which either operand is 0.
    pub const fn skip_zero(mut self) -> CmpFilter {
        self.zero = true;
        self
    }

    /// Leaves out comparisons with a constant of at most this magnitude, as a signed number. Of
    /// several magnitudes, the largest counts.
    pub const fn skip_small(mut self, magnitude: u64) -> CmpFilter {
        self.small = match self.small {
            Some(larger) if larger > magnitude => Some(larger),
            _ => Some(magnitude),
        };
        self
    }

    /// Leaves out comparisons of two variables.
    pub const fn only_const(mut self) -> CmpFilter {
        self.variable = true;
        self
    }

    /// Whether the filter admits a comparison.
    #[inline]
    #[must_use]
    pub const fn admits(&self, operands: Operands) -> bool {
        let (first, second) = operands.unsigned();
        let magnitude = operands.signed().0.unsigned_abs();
        !(self.equal && first == second
            || self.zero && (first == 0 || second == 0)
            || operands.is_const() && matches!(self.small, Some(small) if magnitude <= small)
            || self.variable && !operands.is_const())
    }

    /// The operands of the admitted comparisons, in order.
    pub fn of<I>(self, records: I) -> impl Iterator<Item = Operands> + use<I>
    where
        I: IntoIterator<Item = Comparison>,
    {
        records.into_iter().map(Operands::new).filter(move |operands| self.admits(*operands))
    }
}
