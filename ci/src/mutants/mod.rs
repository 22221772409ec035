//! `mutants`: what the suite notices of alterations.
//!
//! Each mutant is the driver with one place altered. It is compiled, linked and booted, and the
//! suite runs; what the compiler makes the same code of needs no run. What no operator makes is
//! altered by name: in the kernel, or in the library that the suite is built with.

mod campaign;
mod counts;
mod ground;
mod library;
mod mutant;
mod named;
mod operators;
mod page;
mod plain;
mod record;
mod run;
mod subject;
mod trial;

pub(crate) use run::run;

#[cfg(test)]
mod tests;
