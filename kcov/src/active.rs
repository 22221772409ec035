//! The core that all sessions wrap: what was enabled ends once.

use crate::error::Error;
use std::mem::ManuallyDrop;
use std::ptr;

/// How a session ends that `O` is the owner of.
pub(crate) trait End<O> {
    fn end(&self, owner: &O) -> Result<(), Error>;
}

/// What is enabled, until it is finished or dropped.
#[derive(Debug)]
pub(crate) struct Active<O, E: End<O>> {
    pub(crate) owner: O,
    pub(crate) how: E,
}

impl<O, E: End<O>> Active<O, E> {
    /// Ends it. The owner comes back in any case.
    pub(crate) fn finish(self) -> (Result<(), Error>, O) {
        let active = ManuallyDrop::new(self);
        let result = active.how.end(&active.owner);
        // SAFETY: `active` is neither used nor dropped after this, so each field is moved once.
        drop(unsafe { ptr::read(&raw const active.how) });
        // SAFETY: as above.
        (result, unsafe { ptr::read(&raw const active.owner) })
    }
}

impl<O, E: End<O>> Drop for Active<O, E> {
    fn drop(&mut self) {
        // Nobody is left to tell of a failure: it had ended otherwise.
        let _ = self.how.end(&self.owner);
    }
}
