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

pub(crate) use file::File;
pub(crate) use host::{DEFAULT_PATH, Pages, is_user_mode_linux, page_size, provoke};
pub(crate) use mapping::{Mapping, Place};

use crate::buffer::Width;
use crate::remote::linux::Argument;
use crate::system::System;
use kcov_sys::netbsd::kcov_ioc_remote_attach;

/// The system this program runs on.
pub(crate) const SYSTEM: &System = host::SYSTEM;

/// A request to the driver, with its argument. Each system has those that it knows as a table.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "each system reads its own arguments")]
pub(crate) enum Request<'a> {
    /// Sets the size in words of this width.
    SetSize(Width, u64),
    /// Enables a mode by its number.
    Enable(u32),
    Disable,
    /// Linux.
    EnableRemote(&'a Argument),
    /// NetBSD.
    Attach(&'a kcov_ioc_remote_attach),
    /// NetBSD.
    Detach,
    /// Proposed for Linux. Enables with a bitmap of this many words.
    #[cfg(feature = "proposed")]
    EnableUnique(usize),
    /// Proposed for Linux.
    #[cfg(feature = "proposed")]
    ResetTrace,
}

/// The number of a descriptor.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "a system without kcov opens nothing")]
pub(crate) enum Number {
    AtLeast(i32),
    Exactly(i32),
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
