//! Comparison operands: what only Linux promises.

pub(super) mod full;
