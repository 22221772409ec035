//! The systems whose kernels are booted.

use std::fmt;

/// A system. It decides what a program has to be and what the kernel's words
/// mean.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum System {
    /// Linux.
    Linux,
    /// NetBSD.
    NetBsd,
}

impl System {
    /// What the suite calls it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Linux => "linux",
            Self::NetBsd => "netbsd",
        }
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Linux => "Linux",
            Self::NetBsd => "NetBSD",
        })
    }
}
