//! libkcov: the parts of `kcov` and `kcov-signal` that a C header cannot hold. The generated header
//! `libkcov.h` documents the functions.
//!
//! Each exported function runs in [`guard`](failure::guard), so that no panic reaches C, and
//! [`enter`](failure::enter)s its handle. `Option<&mut T>` is a C pointer to a `T` of the caller, or
//! NULL. [`memory`] checks arrays. "As the header demands" refers to the section "Arguments" at its
//! start, in cbindgen.toml.
#![allow(non_camel_case_types, reason = "C's names")]
// Their users read the header, where one section states the rules for all functions.
#![allow(clippy::missing_safety_doc, missing_docs, missing_debug_implementations)]

#[cfg(not(panic = "unwind"))]
compile_error!("libkcov reports panics as errors, so compile it with panic=unwind");

mod comparisons;
mod failure;
mod kernel;
mod memory;
mod novelty;
mod session;
mod set;

#[cfg(test)]
mod tests;
