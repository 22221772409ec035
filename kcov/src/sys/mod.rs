//! Selects the system. All alternatives offer the same names.
//!
//! The rest of the crate uses [`File`] and [`Mapping`]. With the feature `fake` they may belong to
//! a fake kernel instead of the host.

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

/// Identifies a file, in case another file takes its descriptor number.
pub(crate) type Identity = host::Identity;

use crate::system::System;

/// The system this program runs on.
pub(crate) const SYSTEM: &System = host::SYSTEM;
