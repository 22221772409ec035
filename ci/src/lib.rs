//! Builds kernels, boots them, runs a program in them and reports its results.
//!
//! This directory's `README.md` has the two ideas and a diagram. Nothing here
//! knows the subject of the tests: a target is a kernel, a guest is that kernel
//! running, and a program speaks KTAP.

pub mod cache;
pub mod carry;
mod clean;
pub mod cli;
pub mod commands;
pub mod console;
pub mod cpio;
mod drift;
pub mod elf;
pub mod env;
pub mod error;
mod exec;
pub mod expected;
pub mod guest;
mod hash;
pub mod host;
mod ids;
pub mod image;
pub mod kernel;
mod list;
mod mutants;
mod netbsd;
mod output;
mod parallel;
pub mod programs;
pub mod progress;
pub mod report;
mod results;
mod run;
pub mod session;
pub mod source;
pub mod system;
pub mod target;
mod tester;
pub mod verdict;
