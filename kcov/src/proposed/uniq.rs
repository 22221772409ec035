//! Each PC, edge or comparison once, as long as the device is open.

use crate::buffer::Words;
use crate::mode::{Kind, Mode, Seal, TraceCmp, TracePc};
use crate::pc::Pc;
use crate::record::Comparison;
use crate::trace::{Completeness, Trace};
use core::fmt;
use kcov_sys::linux::proposed::{KCOV_TRACE_UNIQ_CMP, KCOV_TRACE_UNIQ_PC};

/// Collects each program counter once: one word per record.
///
/// The kernel remembers what it has recorded until the device is dropped. A reset makes room but
/// does not make the kernel forget.
///
/// # References
///
/// "kcov: introduce new kcov KCOV_TRACE_UNIQ_PC mode", Jiao Joey, 2025-01-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_UNIQ_PC")]
pub struct UniqPc(pub(super) ());

// Proposed for a thread's own coverage alone.
pub(super) const PCS: Kind =
    Kind { wide: false, linux: KCOV_TRACE_UNIQ_PC, netbsd: None, remote: false };
pub(super) const COMPARISONS: Kind =
    Kind { wide: true, linux: KCOV_TRACE_UNIQ_CMP, netbsd: None, remote: false };

impl Mode for UniqPc {
    type Record = Pc;

    #[inline]
    fn kind(self, _: Seal) -> Kind {
        PCS
    }

    #[inline]
    fn decode(self, words: Words<'_>, seal: Seal) -> Option<Pc> {
        TracePc.decode(words, seal)
    }
}

/// Collects each comparison once: four 64-bit words per record. Comparisons are the same if place,
/// type and operands are equal.
///
/// # References
///
/// "kcov: introduce new kcov KCOV_TRACE_UNIQ_CMP mode", Jiao Joey, 2025-01-14.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_UNIQ_CMP")]
pub struct UniqCmp(pub(super) ());

impl Mode for UniqCmp {
    type Record = Comparison;

    #[inline]
    fn kind(self, _: Seal) -> Kind {
        COMPARISONS
    }

    #[inline]
    fn decode(self, words: Words<'_>, seal: Seal) -> Option<Comparison> {
        TraceCmp.decode(words, seal)
    }
}

/// Shows that the kernel collects unique edges. They have their own buffer, so they need an
/// [`EdgeDevice`](super::EdgeDevice).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[doc(alias = "KCOV_TRACE_UNIQ_EDGE")]
pub struct UniqEdge(pub(super) ());

/// Two basic blocks that were executed one after the other, as one number: the second block's
/// address, with its low 12 bits XORed with a hash of the first block's low 12 bits. Different
/// edges can have the same number.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Edge(u64);

impl Edge {
    /// Wraps a recorded word.
    #[inline]
    #[must_use]
    pub const fn new(word: u64) -> Edge {
        Edge(word)
    }

    /// The edge from one block to the next, as a kernel with 64-bit words records it.
    #[must_use]
    pub const fn between(first: Pc, second: Pc) -> Edge {
        Edge(kcov_sys::linux::proposed::kcov_uniq_edge(first.address(), second.address()))
    }

    /// The word, as recorded.
    #[inline]
    #[must_use]
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl fmt::Debug for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Edge({:#x})", self.0)
    }
}

/// Hexadecimal with prefix.
impl fmt::Display for Edge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:#x}", self.0)
    }
}

/// The unique edges that a buffer held at one moment. As with [`Trace`], the count was read once
/// and checked against the buffer's size.
#[derive(Clone, Copy, Debug)]
pub struct EdgeTrace<'b>(pub(super) Trace<'b, TracePc>);

impl<'b> EdgeTrace<'b> {
    /// Number of edges.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are no edges.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of edges that the buffer can hold.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.0.capacity()
    }

    /// Whether edges are missing.
    #[must_use]
    pub fn completeness(&self) -> Completeness {
        self.0.completeness()
    }

    /// The edges in the order in which they were first seen.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Edge> + ExactSizeIterator + use<'b> {
        self.0.iter().map(|word| Edge(word.address()))
    }
}
