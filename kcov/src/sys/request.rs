//! The requests of both systems, by what they do.

use crate::buffer::Width;
use crate::remote::linux::Argument;
use kcov_sys::netbsd::kcov_ioc_remote_attach;

/// A request to the driver, with its argument. Each system has those that it knows as a table.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "Linux's arguments"))]
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
