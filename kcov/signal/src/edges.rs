//! Edges: which block ran after which.

use crate::run::Run;
use crate::signals::{BLOCK, Internal, Signals, runs};
use core::fmt;
use core::ops::ControlFlow;
use kcov::Pc;

/// The bits of the previous PC that go into an edge: its offset in the page, which does not depend
/// on where a module is loaded.
const MASK: u64 = 0xfff;

/// The signal for the step from one PC to the next, as in syzkaller's executor: the low twelve bits
/// of `pc` are XORed with a hash of the low twelve bits of `previous`.
///
/// It is `pc ^ (hash(previous & 0xfff) & 0xfff)`, where `hash` is Thomas Wang's 32-bit integer
/// hash: `a = (a ^ 61) ^ (a >> 16); a += a << 3; a ^= a >> 4; a *= 0x27d4eb2d; a ^= a >> 15`. For
/// the first PC of a trace, `previous` is 0.
///
/// The result is in the same 4 KiB page as `pc`. So a map whose ranges are whole pages can hold
/// edges as well as PCs.
#[inline]
#[must_use]
pub const fn edge(previous: Pc, pc: Pc) -> u64 {
    step(previous.address(), pc.address())
}

#[inline(always)]
const fn step(previous: u64, pc: u64) -> u64 {
    let mut hash = (previous & MASK) as u32;
    hash = (hash ^ 61) ^ (hash >> 16);
    hash = hash.wrapping_add(hash << 3);
    hash ^= hash >> 4;
    hash = hash.wrapping_mul(0x27d4_eb2d);
    hash ^= hash >> 15;
    pc ^ (hash as u64 & MASK)
}

/// The [`edge`]s of a sequence of PCs, as signals.
///
/// ```
/// # use kcov_signal::{Edges, NoveltyMap, Ranges};
/// # let map = NoveltyMap::new(Ranges::single(0x1000..0x3000)?);
/// map.merge(Edges::new(&[0x1010, 0x2020, 0x1010]));
/// assert!(map.has_new(Edges::new(&[0x2020, 0x1010])), "the edge from the start");
/// # Ok::<(), kcov_signal::RangesError>(())
/// ```
#[derive(Clone, Copy)]
pub struct Edges<S>(S);

impl<S: Signals> Edges<S> {
    /// All edges.
    pub fn new(pcs: S) -> Self {
        Edges(pcs)
    }
}

/// Leaves out the PCs: there may be millions.
impl<S> fmt::Debug for Edges<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Edges").finish_non_exhaustive()
    }
}

impl<S: Signals> Signals for Edges<S> {
    #[inline]
    fn runs<F>(self, _: Internal, mut f: F) -> ControlFlow<()>
    where
        F: FnMut(Run<'_>) -> ControlFlow<()>,
    {
        // The element before a block holds the previous PC, so that all steps of a block are
        // computed alike.
        let (mut pcs, mut edges) = ([0; 1 + BLOCK], [0; BLOCK]);
        runs(self.0, |run| {
            for piece in run.pieces(BLOCK) {
                let len = piece.copy(&mut pcs[1..]).len();
                for (edge, (&previous, &pc)) in
                    edges.iter_mut().zip(pcs[..len].iter().zip(&pcs[1..]))
                {
                    *edge = step(previous, pc);
                }
                pcs[0] = pcs[len];
                f(Run::Plain(&edges[..len]))?;
            }
            ControlFlow::Continue(())
        })
    }
}
