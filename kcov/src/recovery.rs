//! After a target that did not leave the instrument alone.

use crate::builder::Builder;
use crate::device::Device;
use crate::error::{Error, ErrorKind, Operation};
use crate::sys;

/// What it takes to open a device again.
#[derive(Debug)]
pub(crate) struct Recovery {
    builder: Builder,
    /// What the descriptor was, by which another file behind its number is told apart.
    identity: sys::Identity,
}

impl Recovery {
    pub(crate) fn new(builder: Builder, file: &sys::Device) -> Recovery {
        Recovery { builder, identity: sys::identity(file) }
    }
}

/// What [`Device::recover`] found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recovered {
    /// The descriptor was closed, or another file had its number: the device was opened again. What
    /// has the number now was left alone.
    pub descriptor: bool,
    /// The buffer was unmapped, or something else was mapped in its place: it was mapped again,
    /// over that.
    pub mapping: bool,
}

impl Device {
    /// Looks whether the descriptor and the mapping are still what they were and repairs what is
    /// not. To be called when a target may have closed, replaced, unmapped or remapped what was not
    /// its own; the records of the last session are lost.
    ///
    /// A thread that was traced while its descriptor was closed stays traced until it ends, and is
    /// refused as [`AlreadyEnabled`](ErrorKind::AlreadyEnabled) until then: go on in another one.
    /// [Guard pages](Builder::guard_pages) are not looked at. A target that has mapped a file there
    /// and cut it short makes looking fault, as any other access would.
    ///
    /// # Errors
    ///
    /// - [`NotRecoverable`](ErrorKind::NotRecoverable): the device was not opened as
    ///   [recoverable](Builder::recoverable).
    /// - As [`Builder::open`], where the device has to be opened again.
    pub fn recover(&mut self) -> Result<Recovered, Error> {
        let not_recoverable = || Error::new(Operation::Open, ErrorKind::NotRecoverable);
        let mut recovery = self.recovery.take().ok_or_else(not_recoverable)?;
        let recovered = self.recover_by(&mut recovery);
        self.recovery = Some(recovery);
        recovered
    }

    fn recover_by(&mut self, recovery: &mut Recovery) -> Result<Recovered, Error> {
        let mut recovered = Recovered::default();
        self.allow_reading();
        if sys::identity(self.file()) != recovery.identity {
            let file = recovery.builder.open_file()?;
            let words = self.words as u64;
            sys::set_size(&file, self.width, words)
                .map_err(|errno| Error::from_errno(Operation::SetSize, errno))?;
            recovery.identity = sys::identity(&file);
            // Whoever has the number now is not this device, so it is not to be closed.
            sys::put_in_place(self.file_mut(), file);
            recovered.descriptor = true;
            (*self.enabled.get_mut(), *self.attached.get_mut()) = (false, false);
        } else if *self.enabled.get_mut() {
            // A session was leaked. If it was another thread's, the request is refused.
            let _ = self.request_disable();
        }
        let map_error = |errno| Error::from_errno(Operation::Map, errno);
        // A new descriptor has a new buffer, so what is mapped has to be replaced in any case.
        let shows = self.mapping().shows(self.file()).map_err(map_error)?;
        if !shows {
            self.mapping().renew(self.file()).map_err(map_error)?;
            recovered.mapping = !recovered.descriptor;
        }
        // A mapping that was renewed bears no key, and one that was not may have lost it.
        let covered = self.mapping().cover(self.mapping().key());
        covered.map_err(|errno| Error::from_errno(Operation::Protect, errno))?;
        self.unprotect()?;
        self.write(|| self.buffer().clear(1));
        self.protect()?;
        Ok(recovered)
    }
}
