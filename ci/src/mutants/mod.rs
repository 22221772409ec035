//! `mutants`: proves that the suite's checks can fail.
//!
//! Each alteration changes one file of a kernel or of the library that the suite links. It is
//! compiled, linked and booted, and the checks that it names must fail. NetBSD's kernels come from
//! the user's tree and command.

mod alteration;
mod bench;
mod judge;
mod library;
mod place;
mod run;

pub use alteration::Alteration;
pub use run::{run, select};

#[cfg(test)]
mod tests;
