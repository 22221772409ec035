//! Systems without supported kcov: everything compiles, but opening fails.

use super::{Number, Place, Request};
use crate::error::ErrorKind;
use crate::system::{NETBSD, System};
use std::path::Path;
use std::ptr::NonNull;

/// Unused rules.
pub(crate) const SYSTEM: &System = &NETBSD;
pub(crate) const DEFAULT_PATH: &str = "/dev/kcov";

/// The errno of every failure; no system call was made.
const NOT_SUPPORTED: i32 = 0;

// No value of this type is ever made.
cfg_if::cfg_if! {
    if #[cfg(unix)] {
        pub(crate) use std::os::fd::OwnedFd as File;
    } else {
        pub(crate) use std::fs::File;
    }
}

/// Never constructed.
#[derive(Debug)]
pub(crate) struct Pages;

pub(crate) fn request(_: &File, _: Request<'_>) -> Result<(), i32> {
    Err(NOT_SUPPORTED)
}

impl Pages {
    pub(crate) fn map(_: &File, _: usize, _: Place) -> Result<Pages, i32> {
        Err(NOT_SUPPORTED)
    }

    #[cfg(feature = "proposed")]
    pub(crate) fn map_at(_: &File, _: usize, _: u64, _: Option<usize>) -> Result<Pages, i32> {
        Err(NOT_SUPPORTED)
    }

    pub(crate) fn start(&self) -> NonNull<u64> {
        NonNull::dangling()
    }

    pub(crate) fn check(&self, _: usize) -> Result<(), i32> {
        Err(NOT_SUPPORTED)
    }
}

pub(crate) fn open(_: &Path) -> Result<File, i32> {
    Err(NOT_SUPPORTED)
}

pub(crate) fn is_kcov(_: &Path, _: &File) -> bool {
    false
}

pub(crate) fn move_to(_: File, _: Number) -> Result<File, i32> {
    Err(NOT_SUPPORTED)
}

pub(crate) fn explain_open(_: &Path, _: i32) -> Option<ErrorKind> {
    Some(ErrorKind::Unsupported)
}

pub(crate) fn is_user_mode_linux() -> bool {
    false
}

pub(crate) fn page_size() -> usize {
    4096
}

pub(crate) fn provoke() {}
