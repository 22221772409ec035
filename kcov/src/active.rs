//! The core of every session: ends what was enabled exactly once.

use crate::error::Error;
use std::mem::ManuallyDrop;
use std::ptr;

/// How to end a session with an owner of type `O`.
pub(crate) trait End<O> {
    fn end(&self, owner: &O) -> Result<(), Error>;
}

/// An enabled session, until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct Active<O, E: End<O>> {
    pub(crate) owner: O,
    pub(crate) how: E,
}

impl<O, E: End<O>> Active<O, E> {
    /// Ends the session. Returns the owner even on failure.
    pub(crate) fn finish(self) -> (Result<(), Error>, O) {
        let active = ManuallyDrop::new(self);
        let result = active.how.end(&active.owner);
        // SAFETY: `ManuallyDrop` prevents a second drop; `active` is not used again, so `how` moves
        // once.
        drop(unsafe { ptr::read(&raw const active.how) });
        // SAFETY: likewise for `owner`.
        (result, unsafe { ptr::read(&raw const active.owner) })
    }
}

impl<O, E: End<O>> Drop for Active<O, E> {
    fn drop(&mut self) {
        // A failure means that the session had already ended; a destructor cannot report it.
        let _ = self.how.end(&self.owner);
    }
}
