//! `mutants`: measures which alterations the suite notices.
//!
//! Each mutant is the driver with one place altered. It is compiled, linked and booted, and the
//! suite runs. Mutants that compile to identical code are skipped. Named alterations add changes
//! that no operator makes, in the kernel or in the suite's library. NetBSD's kernels come from the
//! user's tree and command.

mod bench;
mod campaign;
mod counts;
mod ground;
mod known;
mod library;
mod lockstep;
mod mutant;
mod named;
mod operators;
mod page;
mod plain;
mod record;
mod run;
mod subject;
mod trial;

pub use run::run;

#[cfg(test)]
mod tests;
