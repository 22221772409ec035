//! Builds kernels, boots them, runs a program in them and reports its results.
//!
//! This directory's `README.md` has the two ideas and a diagram. Nothing here knows the subject of
//! the tests: a target is a kernel, a guest is that kernel running, and a program speaks KTAP.

pub mod arch;
pub mod cache;
pub mod carry;
pub mod cli;
pub mod commands;
mod console;
pub mod context;
mod cpio;
mod elf;
pub mod env;
pub mod error;
mod exec;
mod fuzz;
pub mod guest;
pub mod hash;
pub mod home;
pub mod host;
pub mod ids;
pub mod image;
pub mod kernel;
mod lines;
pub mod netbsd;
pub mod output;
pub mod parallel;
pub mod programs;
mod progress;
pub mod report;
pub mod run;
pub mod session;
pub mod source;
pub mod system;
pub mod target;
pub mod tester;
pub mod toolchain;
pub mod verdict;
