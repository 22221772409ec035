//! Systems without supported kcov: everything compiles, but opening fails.

use super::Place;
use crate::buffer::Width;
use crate::error::ErrorKind;
use crate::remote::linux::Argument;
use crate::system::{NETBSD, System};
use kcov_sys::netbsd::kcov_ioc_remote_attach;
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

/// Requests, which always fail.
macro_rules! refuse {
    ($($(#[$meta:meta])* $name:ident($($type:ty),*);)*) => {$(
        $(#[$meta])*
        pub(crate) fn $name(_: &File $(, _: $type)*) -> Result<(), i32> {
            Err(NOT_SUPPORTED)
        }
    )*};
}

refuse! {
    set_size(Width, u64);
    enable(u32);
    disable();
    enable_remote(&Argument);
    attach(kcov_ioc_remote_attach);
    detach();
    #[cfg(feature = "proposed")]
    enable_unique(usize);
    #[cfg(feature = "proposed")]
    reset_trace();
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

pub(crate) fn move_up(_: File, _: i32) -> Result<File, i32> {
    Err(NOT_SUPPORTED)
}

pub(crate) fn move_to(_: File, _: i32) -> Result<File, i32> {
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
