//! What a host makes of the claims of `kcov-conformance`: the generated pages of the reference, and
//! the comparison of the claims with the sources that they quote.

pub mod drift;
pub mod pages;
