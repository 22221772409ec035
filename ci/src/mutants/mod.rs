//! `mutants`: how much of a driver can be altered before the suite notices.
//!
//! Each mutant is the driver with one place altered. It is compiled, linked and booted, and the
//! suite runs to its first red check. What the compiler makes the same code of needs no run.

mod campaign;
mod mutant;
mod operators;
mod order;
mod page;
mod plain;
mod record;
mod run;
mod subject;
mod trial;

pub(crate) use run::run;

#[cfg(test)]
mod tests;
