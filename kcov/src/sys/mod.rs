//! The one switch between systems: the files that it chooses between offer the same names.
//!
//! [`File`] and [`Mapping`] are what the rest of the crate uses; with the feature `fake` they may be
//! those of a fake kernel instead of the host's.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;
        mod unix;
        mod host {
            pub(crate) use super::{linux::*, unix::*};
        }
    } else if #[cfg(target_os = "netbsd")] {
        mod netbsd;
        mod unix;
        mod host {
            pub(crate) use super::{netbsd::*, unix::*};
        }
    } else {
        mod unsupported;
        use unsupported as host;
    }
}

mod file;
mod mapping;

cfg_if::cfg_if! {
    if #[cfg(not(feature = "pkeys"))] {
    } else if #[cfg(all(target_os = "linux", any(target_arch = "x86", target_arch = "x86_64")))] {
        mod pkey;
        pub(crate) use pkey::Key;
    } else {
        mod no_pkey;
        pub(crate) use no_pkey::Key;
    }
}

pub(crate) use file::File;
pub(crate) use host::{DEFAULT_PATH, page_size, provoke, stamp};
pub(crate) use host::{Look, Pages};
pub(crate) use mapping::Mapping;
#[cfg(any(feature = "pkeys", feature = "proposed"))]
pub(crate) use mapping::Memory;

/// What tells a file from another one that has its number.
pub(crate) type Identity = host::Identity;

use crate::system::System;

/// The system that this program runs on.
pub(crate) const SYSTEM: &System = host::SYSTEM;
