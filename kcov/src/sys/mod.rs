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
mod request;

pub(crate) use file::File;
pub(crate) use host::{DEFAULT_PATH, Pages, is_user_mode_linux, page_size, provoke};
pub(crate) use mapping::{Mapping, Place};
pub(crate) use request::Request;

use crate::system::System;

/// The system this program runs on.
pub(crate) const SYSTEM: &System = host::SYSTEM;

/// The number of a descriptor.
#[derive(Clone, Copy, Debug)]
#[allow(dead_code, reason = "a system without kcov opens nothing")]
pub(crate) enum Number {
    AtLeast(i32),
    Exactly(i32),
}

#[cfg(all(test, target_os = "linux"))]
mod tests;
