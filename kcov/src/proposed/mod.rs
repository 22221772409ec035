//! Modes that have been proposed for Linux but are in no released kernel.
//!
//! **Not covered by this crate's versions:** this module follows the last posting of each proposal.
//! It changes when a proposal is merged in another form or abandoned. Nothing outside this module
//! needs it.
//!
//! | Proposal | Author, last posted | Here |
//! |---|---|---|
//! | "KCOV function entry/exit records", `CONFIG_KCOV_EXT_RECORDS` | Jann Horn, v2 of 2026-03-18 | [`TracePcExt`], [`CallTree`] |
//! | "Introduce New Unique PC/EDGE/CMP Modes" | Jiao Joey, v1 of 2025-01-14 | [`UniqPc`], [`UniqCmp`], [`EdgeDevice`] |
//! | "Coverage deduplication for KCOV", `CONFIG_KCOV_UNIQUE` | Alexander Potapenko, v4 of 2025-07-31 | [`UniqueEnable`] |
//!
//! The proposals collide: mode 2 is `KCOV_TRACE_PC_EXT` in the first and `KCOV_TRACE_UNIQ_PC` in
//! the second. So these modes have no public constructors: they come from [`Proposals`], found by
//! trying. The probe tests what the kernel does, not only which numbers it accepts.
//!
//! ```no_run
//! use kcov::{Device, Error, Modes};
//!
//! # fn main() -> Result<(), Error> {
//! let Some(mode) = Modes::probe()?.proposals().trace_pc_ext() else { return Ok(()) };
//! let mut device = Device::open()?;
//! let session = device.enable(mode)?;
//! let _ = std::fs::metadata("/");
//! for record in session.disable()?.trace().iter() {
//!     println!("{:?} {}", record.kind(), record.pc());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Platforms
//!
//! Linux with a proposal's patches. Elsewhere the probe finds none.

mod call_tree;
mod extended;
mod uniq;

pub use call_tree::{CallTree, Event, Step};
pub use extended::{ExtendedPc, RecordKind, TracePcExt};
pub use uniq::{Edge, EdgeTrace, UniqCmp, UniqEdge, UniqPc};

cfg_if::cfg_if! {
    if #[cfg(feature = "std")] {
        mod edge;
        mod errors;
        mod probe;
        mod unique;

        pub use edge::{EdgeDevice, EdgeSession};
        pub use unique::{UniqueEnable, UniqueSession};

        pub(crate) use errors::ERRORS;
        pub(crate) use probe::probe;
    }
}

use core::fmt;

/// Whether a kernel implements a proposal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Presence {
    /// The kernel does not know it, or does not behave as proposed.
    #[default]
    Absent,
    /// The kernel has the code but was built without it: it returns errno 524.
    NotBuiltIn,
    /// The kernel was seen to behave as proposed.
    Present,
}

/// The proposals that a kernel implements, from [`Modes::proposals`](crate::Modes::proposals).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Proposals {
    extended_records: Presence,
    unique_modes: Presence,
    unique_comparisons: bool,
    unique_enable: Presence,
}

impl Proposals {
    /// Records with a flag for function entry or exit (Jann Horn).
    #[must_use]
    #[doc(alias = "CONFIG_KCOV_EXT_RECORDS")]
    pub fn extended_records(&self) -> Presence {
        self.extended_records
    }

    /// Modes that record each PC, edge or comparison once (Jiao Joey). No option leaves them out of
    /// the kernel.
    #[must_use]
    pub fn unique_modes(&self) -> Presence {
        self.unique_modes
    }

    /// A request that enables with a bitmap, so that each PC is recorded once (Alexander
    /// Potapenko).
    #[must_use]
    #[doc(alias = "CONFIG_KCOV_UNIQUE")]
    pub fn unique_enable(&self) -> Presence {
        self.unique_enable
    }

    /// The mode of extended records, if present.
    #[must_use]
    pub fn trace_pc_ext(&self) -> Option<TracePcExt> {
        (self.extended_records == Presence::Present).then_some(TracePcExt(()))
    }

    /// The mode of unique PCs, if present.
    #[must_use]
    pub fn uniq_pc(&self) -> Option<UniqPc> {
        (self.unique_modes == Presence::Present).then_some(UniqPc(()))
    }

    /// The mode of unique edges, if present.
    #[must_use]
    pub fn uniq_edge(&self) -> Option<UniqEdge> {
        (self.unique_modes == Presence::Present).then_some(UniqEdge(()))
    }

    /// The mode of unique comparisons, if present and comparisons are built in.
    #[must_use]
    pub fn uniq_cmp(&self) -> Option<UniqCmp> {
        (self.unique_modes == Presence::Present && self.unique_comparisons).then_some(UniqCmp(()))
    }

    /// Whether the kernel has a mode.
    #[cfg(feature = "std")]
    pub(crate) fn contains(&self, kind: crate::mode::Kind) -> bool {
        match kind {
            extended::KIND => self.trace_pc_ext().is_some(),
            uniq::PCS => self.uniq_pc().is_some(),
            uniq::COMPARISONS => self.uniq_cmp().is_some(),
            _ => false,
        }
    }

    /// The requests of the third proposal, if present.
    #[cfg(feature = "std")]
    #[must_use]
    pub fn unique(&self) -> Option<UniqueEnable> {
        (self.unique_enable == Presence::Present).then_some(UniqueEnable(()))
    }
}

/// The proposals that are present, or known but not built in. Empty if there are none.
impl fmt::Display for Proposals {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = [
            ("extended records", self.extended_records),
            ("unique modes", self.unique_modes),
            ("unique enable", self.unique_enable),
        ];
        let mut separator = "";
        for (name, presence) in all {
            let note = match presence {
                Presence::Absent => continue,
                Presence::NotBuiltIn => " (not built in)",
                Presence::Present => "",
            };
            write!(f, "{separator}{name}{note}")?;
            separator = ", ";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
