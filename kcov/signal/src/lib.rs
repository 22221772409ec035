//! What a fuzzer does with a trace after each execution: was anything new, and what is the set?
//!
//! Everything here takes [`Signals`]: a [`Trace`](crate::Trace) of PCs where it lies, in a live
//! session's buffer, or words that the caller owns; as they are, [as edges](Edges), or
//! [filtered](PcFilter).
//!
//! ```
//! use kcov::signal::{NoveltyMap, Ranges};
//! use kcov::{Trace, mode::TracePc};
//! use std::sync::atomic::AtomicU64;
//!
//! let text = Ranges::single(0xffff_ffff_8100_0000..0xffff_ffff_8200_0000)?;
//! let mut map = NoveltyMap::new(text);
//! # let buffer = [2, 0xffff_ffff_8100_0010, 0xffff_ffff_8100_0020].map(AtomicU64::new);
//! let trace = Trace::from_words(&buffer, TracePc); // or `session.trace()`
//! if map.has_new(trace) {
//!     assert_eq!(map.merge(trace).new, 2);
//! }
//! assert!(!map.has_new(trace));
//! # Ok::<(), kcov::signal::RangesError>(())
//! ```
//!
//! Nothing here makes a system call or trusts a word of a trace for more than its value.
//! Asking allocates nothing; what allocates says so.

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod avx2;
mod blocks;
mod comparisons;
mod dictionary;
mod edges;
mod eights;
mod fallback;
mod filter;
mod flat;
mod format;
mod hits;
mod iter;
mod known;
mod merge;
mod novelty;
mod packed;
mod path;
mod ranges;
mod shared;
mod store;
mod unique;

#[cfg(feature = "std")]
mod file;

pub use blocks::Signals;
pub use comparisons::{CmpFilter, Operands};
pub use dictionary::{Dictionary, Entry};
pub use edges::{Edges, edge};
pub use filter::{Filtered, PcFilter};
pub use format::FormatError;
pub use hits::{classify, count_hits};
pub use iter::Iter;
pub use merge::Merged;
pub use novelty::NoveltyMap;
pub use ranges::{Ranges, RangesError};
pub use shared::{SharedError, SharedMap};
pub use unique::UniqueSet;

#[cfg(feature = "std")]
pub use file::FileError;
