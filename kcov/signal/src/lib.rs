//! Analyzes kcov traces for fuzzers: is anything new after an execution, and what is it?
//!
//! Every function takes [`Signals`]: a [`Trace`](kcov::Trace) of PCs in a live session's buffer, or
//! words that the caller owns. Signals are PCs as recorded, or [edges](Edges).
//!
//! ```
//! use kcov::{Trace, mode::TracePc};
//! use kcov_signal::{NoveltyMap, Ranges};
//! use std::sync::atomic::AtomicU64;
//!
//! let text = Ranges::single(0xffff_ffff_8100_0000..0xffff_ffff_8200_0000)?;
//! let map = NoveltyMap::new(text);
//! # let buffer = [2, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020].map(AtomicU64::new);
//! let trace = Trace::from_words(&buffer, TracePc); // or `session.trace()`
//! if map.has_new(trace) {
//!     assert_eq!(map.merge(trace).new, 2);
//! }
//! assert!(!map.has_new(trace));
//! # Ok::<(), kcov_signal::RangesError>(())
//! ```
//!
//! # What to use
//!
//! | Question | |
//! |---|---|
//! | Did this execution reach anything new? | [`NoveltyMap`], also between threads and processes |
//! | Which signals did it reach? | [`UniqueSet`] |
//! | Does it reach the same each time? | [`Repeats`] |
//! | How often, for AFL, LibAFL or libFuzzer? | [`count_hits`] |
//! | Where is the kernel's text, and how far did KASLR move it? | [`KernelText`] |
//! | What did the kernel compare the input with? | [`Operands`], [`Dictionary`] |
//!
//! Nothing here makes a system call, except [`KernelText`] and the functions that save and load
//! maps. A corrupt word in a trace is just another signal. Functions that allocate say so.
//!
//! # Features
//!
//! `std` (default) saves and loads maps, and finds the kernel's text. Without it the crate is `no_std`
//! with `alloc`.
#![cfg_attr(not(feature = "std"), no_std)]
#![cfg_attr(doctest, doc = include_str!("../README.md"))]
#![warn(clippy::missing_errors_doc, clippy::missing_panics_doc)]

extern crate alloc;

mod comparisons;
mod dictionary;
mod edges;
mod format;
mod hits;
mod iter;
mod merge;
mod novelty;
mod parts;
mod ranges;
mod repeats;
mod replacements;
mod run;
mod signals;
mod unique;

#[cfg(feature = "std")]
mod file;
#[cfg(feature = "std")]
mod kernel;

pub use comparisons::{CmpFilter, Operands};
pub use dictionary::Dictionary;
pub use edges::{Edges, edge};
pub use format::FormatError;
pub use hits::count_hits;
pub use iter::MapIter;
pub use merge::Merged;
pub use novelty::{MemoryError, NoveltyMap};
pub use ranges::{Ranges, RangesError};
pub use repeats::Repeats;
pub use replacements::{Replacement, Token};
pub use signals::Signals;
pub use unique::UniqueSet;

#[cfg(feature = "std")]
pub use file::FileError;
#[cfg(feature = "std")]
pub use kernel::{KernelText, KernelTextError};
