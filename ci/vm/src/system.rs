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
    /// Says why this signal may have killed a program, if its number tells.
    pub(crate) fn cause(self, signal: i32) -> Option<&'static str> {
        /// `SIGSYS` (`sys/sys/signal.h`).
        const SIGSYS: i32 = 12;
        (self == Self::NetBsd && signal == SIGSYS).then_some(
            "the program was killed by SIGSYS: the kernel lacks a system call that it made; link \
             it against the libraries of the kernel's release, or add that release's COMPAT \
             options to the kernel (docs/src/netbsd-lane.md)",
        )
    }

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
