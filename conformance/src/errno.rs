//! Error numbers, including those that no libc names.

use crate::system::ERRNOS;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The error number of a failed system call.
///
/// `nix::errno::Errno` folds the kernel's internal numbers into one unknown value.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errno(pub i32);

/// The name of an errno, which is the same on all systems.
pub type Name = &'static str;

pub type Result<T, E = Errno> = std::result::Result<T, E>;

impl Errno {
    /// The errno of the calling thread's last failed call.
    pub fn last() -> Errno {
        Errno(nix::errno::Errno::last_raw())
    }

    /// The number of the errno with this name.
    pub fn by_name(name: &str) -> Option<Errno> {
        ERRNOS.iter().find(|entry| entry.0 == name).map(|entry| Errno(entry.1))
    }

    /// The name in claims.
    pub fn name(self) -> Option<Name> {
        ERRNOS.iter().find(|entry| entry.1 == self.0).map(|entry| entry.0)
    }

    /// [`Ok`] unless a system call returned -1.
    pub(crate) fn check<T: PartialEq + From<i8>>(returned: T) -> Result<T> {
        if returned == T::from(-1) { Err(Errno::last()) } else { Ok(returned) }
    }
}

impl From<nix::errno::Errno> for Errno {
    fn from(errno: nix::errno::Errno) -> Errno {
        Errno(errno as i32)
    }
}

impl From<std::io::Error> for Errno {
    fn from(error: std::io::Error) -> Errno {
        Errno(error.raw_os_error().unwrap_or(libc::EIO))
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => write!(f, "{name} ({})", self.0),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
