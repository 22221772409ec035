//! Error numbers, including those that no libc names.

use serde::{Deserialize, Serialize};
use std::fmt;

/// The error number of a failed system call.
///
/// `nix::errno::Errno` folds the kernel's internal numbers into one unknown value.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Errno(pub i32);

/// The result of a system call.
pub type Result<T> = std::result::Result<T, Errno>;

const NAMES: &[(&str, i32)] = &[
    ("EPERM", libc::EPERM),
    ("ENOENT", libc::ENOENT),
    ("ENXIO", libc::ENXIO),
    ("EBADF", libc::EBADF),
    ("ENOMEM", libc::ENOMEM),
    ("EACCES", libc::EACCES),
    ("EFAULT", libc::EFAULT),
    ("EBUSY", libc::EBUSY),
    ("EEXIST", libc::EEXIST),
    ("ENODEV", libc::ENODEV),
    ("EINVAL", libc::EINVAL),
    ("EMFILE", libc::EMFILE),
    ("ENOTTY", libc::ENOTTY),
    ("ENOSPC", libc::ENOSPC),
    ("ESPIPE", libc::ESPIPE),
    ("ENOSYS", libc::ENOSYS),
    ("ENOBUFS", libc::ENOBUFS),
    ("EOVERFLOW", libc::EOVERFLOW),
    ("EOPNOTSUPP", libc::EOPNOTSUPP),
    ("ENOTSUPP", kcov_sys::linux::ENOTSUPP),
];

impl Errno {
    /// The errno of the calling thread's last failed call.
    #[must_use]
    pub fn last() -> Errno {
        Errno(nix::errno::Errno::last_raw())
    }

    /// The number of the errno with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Errno> {
        NAMES.iter().find(|entry| entry.0 == name).map(|entry| Errno(entry.1))
    }

    /// The name in claims.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.iter().find(|entry| entry.1 == self.0).map(|entry| entry.0)
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

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match NAMES.iter().find(|entry| entry.1 == self.0) {
            Some((name, number)) => write!(f, "{name} ({number})"),
            None => write!(f, "errno {}", self.0),
        }
    }
}

impl fmt::Debug for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
