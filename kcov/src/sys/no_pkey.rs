//! Systems and processors without supported memory protection keys.

use super::Pages;
use crate::error::ErrorKind;

/// The errno with which [`Key::new`] fails, without a system call.
const NOT_SUPPORTED: i32 = 0;

/// Uninhabited, so none of its methods can be called.
#[derive(Debug)]
pub(crate) enum Key {}

impl Key {
    pub(crate) fn new() -> Result<Key, i32> {
        Err(NOT_SUPPORTED)
    }

    pub(crate) fn explain(_: i32) -> Option<ErrorKind> {
        Some(ErrorKind::NoProtectionKeys)
    }

    /// # Safety
    ///
    /// Cannot be called.
    #[allow(dead_code, reason = "where there is no kcov, there is no buffer to cover")]
    pub(crate) unsafe fn cover(&self, _: &Pages) -> Result<(), i32> {
        match *self {}
    }

    pub(crate) fn allow_reading(&self) {
        match *self {}
    }

    pub(crate) fn write(&self, _: impl FnOnce()) {
        match *self {}
    }
}
