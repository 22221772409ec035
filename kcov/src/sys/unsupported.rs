//! Systems without a kcov that this crate knows: everything compiles, opening fails.

use crate::buffer::Width;
use crate::error::ErrorKind;
use crate::remote::linux::Argument;
use crate::system::{System, UNSUPPORTED};
use kcov_sys::netbsd::kcov_ioc_remote_attach;
use std::path::Path;
use std::ptr::NonNull;

pub(crate) const SYSTEM: &System = &UNSUPPORTED;
pub(crate) const DEFAULT_PATH: &str = "/dev/kcov";

/// What [`open`] fails with; no system call was made.
const NOT_SUPPORTED: i32 = 0;

/// There is no device, so none of its functions can be called.
#[derive(Debug)]
pub(crate) enum File {}

#[cfg(unix)]
mod descriptor {
    use super::File;
    use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

    impl AsFd for File {
        fn as_fd(&self) -> BorrowedFd<'_> {
            match *self {}
        }
    }

    impl From<File> for OwnedFd {
        fn from(file: File) -> OwnedFd {
            match file {}
        }
    }
}

pub(crate) type Identity = ();

#[derive(Debug)]
pub(crate) enum Pages {}

impl Pages {
    pub(crate) fn map(file: &File, _: usize, _: usize) -> Result<Pages, i32> {
        match *file {}
    }

    #[cfg(feature = "proposed")]
    pub(crate) fn map_at(file: &File, _: usize, _: u64) -> Result<Pages, i32> {
        match *file {}
    }

    pub(crate) fn start(&self) -> NonNull<u64> {
        match *self {}
    }

    pub(crate) fn set_writable(&self, _: bool) -> Result<(), i32> {
        match *self {}
    }

    #[cfg(feature = "pkeys")]
    pub(crate) fn cover(&self, _: &super::Key) -> Result<(), i32> {
        match *self {}
    }

    pub(crate) fn ends(&self) -> Vec<u64> {
        match *self {}
    }

    pub(crate) fn mark(&self) -> Vec<u64> {
        match *self {}
    }

    pub(crate) fn holds(&self, _: &[u64]) -> bool {
        match *self {}
    }

    pub(crate) fn abandon(self, _: u64) {
        match self {}
    }
}

pub(crate) fn page_size() -> usize {
    4096
}

pub(crate) fn open(_: &Path) -> Result<File, i32> {
    Err(NOT_SUPPORTED)
}

pub(crate) fn is_kcov(_: &Path, file: &File) -> bool {
    match *file {}
}

pub(crate) fn move_up(file: File, _: i32) -> Result<File, i32> {
    match file {}
}

pub(crate) fn identity(file: &File) -> Identity {
    match *file {}
}

pub(crate) fn set_size(file: &File, _: Width, _: u64) -> Result<(), i32> {
    match *file {}
}

pub(crate) fn enable(file: &File, _: u32) -> Result<(), i32> {
    match *file {}
}

pub(crate) fn disable(file: &File) -> Result<(), i32> {
    match *file {}
}

pub(crate) fn enable_remote(file: &File, _: &Argument) -> Result<(), i32> {
    match *file {}
}

#[cfg(feature = "proposed")]
pub(crate) fn enable_unique(file: &File, _: usize) -> Result<(), i32> {
    match *file {}
}

#[cfg(feature = "proposed")]
pub(crate) fn reset_trace(file: &File) -> Result<(), i32> {
    match *file {}
}

pub(crate) fn attach(file: &File, _: kcov_ioc_remote_attach) -> Result<(), i32> {
    match *file {}
}

pub(crate) fn detach(file: &File) -> Result<(), i32> {
    match *file {}
}

pub(crate) fn explain_open(_: &Path, _: i32) -> Option<ErrorKind> {
    None
}

pub(crate) fn provoke() {}

pub(crate) fn read_symbols() -> Result<String, i32> {
    Err(NOT_SUPPORTED)
}

pub(crate) fn stamp() -> u64 {
    0
}
