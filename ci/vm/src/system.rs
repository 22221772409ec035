//! The systems of the booted kernels.

use std::fmt;

/// A system. It determines the format of programs and the meaning of kernel messages.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum System {
    /// Linux.
    Linux,
    /// NetBSD.
    NetBsd,
}

impl System {
    /// The suite's name for the system.
    pub fn word(self) -> String {
        self.to_string().to_lowercase()
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
