//! Filtering of PCs.

use crate::ranges::Ranges;
use crate::run::Run;
use crate::signals::{BLOCK, Internal, Signals, runs};
use core::fmt;
use core::ops::ControlFlow;
use kcov::Pc;

/// Admits PCs by their address.
///
/// A new filter admits every PC. [`allow`](Self::allow) and [`deny`](Self::deny) restrict it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PcFilter {
    allow: Option<Ranges>,
    deny: Ranges,
}

impl PcFilter {
    /// A filter that admits every PC.
    #[must_use]
    pub fn new() -> PcFilter {
        PcFilter::default()
    }

    /// Admits no PC outside these ranges and those of earlier calls. Allocates.
    #[must_use]
    pub fn allow(mut self, ranges: Ranges) -> PcFilter {
        self.allow = Some(self.allow.unwrap_or_default().and(ranges));
        self
    }

    /// Admits no PC in these ranges, even if they are allowed, nor in those of earlier calls.
    /// Allocates.
    #[must_use]
    pub fn deny(mut self, ranges: Ranges) -> PcFilter {
        self.deny = self.deny.and(ranges);
        self
    }

    /// Whether the filter admits a PC.
    #[inline]
    #[must_use]
    pub fn admits(&self, pc: Pc) -> bool {
        self.allow.as_ref().is_none_or(|allow| allow.contains(pc.address()))
            && !self.deny.contains(pc.address())
    }

    /// The PCs that the filter admits, as signals.
    pub fn of<S: Signals>(&self, pcs: S) -> Filtered<'_, S> {
        Filtered { filter: self, pcs }
    }
}

/// The PCs that a [`PcFilter`] admits. [`PcFilter::of`] makes it.
#[derive(Clone, Copy)]
pub struct Filtered<'f, S> {
    filter: &'f PcFilter,
    pcs: S,
}

/// Leaves out the PCs: there may be millions.
impl<S> fmt::Debug for Filtered<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Filtered").field("filter", self.filter).finish_non_exhaustive()
    }
}

impl<S: Signals> Signals for Filtered<'_, S> {
    #[inline]
    fn runs<F>(self, _: Internal, mut f: F) -> ControlFlow<()>
    where
        F: FnMut(Run<'_>) -> ControlFlow<()>,
    {
        let mut admitted = [0; BLOCK];
        runs(self.pcs, |run| {
            for piece in run.pieces(BLOCK) {
                let mut count = 0;
                piece.for_each(|pc| {
                    admitted[count] = pc;
                    count += usize::from(self.filter.admits(Pc::new(pc)));
                });
                f(Run::Plain(&admitted[..count]))?;
            }
            ControlFlow::Continue(())
        })
    }
}
