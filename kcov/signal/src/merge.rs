//! Results of insertions, and hashing.

/// What a merge did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Merged {
    /// Number of signals that were new and are now remembered. Each counts once.
    pub new: usize,
    /// Number of new signals that could not be remembered: they are outside the ranges and the
    /// fallback is full. Counts every occurrence. They are not part of `new`.
    pub unrecorded: usize,
}

impl Merged {
    pub(crate) fn add(&mut self, inserted: Inserted) {
        match inserted {
            Inserted::Known => {}
            Inserted::New => self.new += 1,
            Inserted::Full => self.unrecorded += 1,
        }
    }
}

/// Result of an insertion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inserted {
    Known,
    New,
    /// New, but there was no room to remember it.
    Full,
}

/// The number of slots for `capacity` numbers: a power of two. At most half are in use, so every
/// search reaches a free slot.
pub(crate) fn slots(capacity: usize) -> usize {
    capacity.saturating_mul(2).max(2).next_power_of_two()
}

/// The first slot to probe for a number. `slots` is a power of two and at least 2.
#[inline]
pub(crate) fn first_slot(number: u64, slots: usize) -> usize {
    // Fibonacci hashing: the high bits of the product with 2^64 / phi.
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - slots.trailing_zeros())) as usize
}
