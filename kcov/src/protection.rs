//! Buffers that bear a memory protection key.

use crate::device::Device;
use crate::error::{Error, Operation};
use crate::sys::Key;

impl Device {
    /// Lets the calling thread read the buffer of a device that was opened as
    /// [`write_protected_by_key`](crate::Builder::write_protected_by_key), which says who has to call
    /// this. Without a key it does nothing.
    ///
    /// Two instructions on a register of the thread, no system call. A signal handler loses the right
    /// when it returns.
    #[inline]
    pub fn allow_reading(&self) {
        if let Some(key) = self.parts.mapping.key() {
            key.allow_reading();
        }
    }

    /// From now on the buffer bears a key.
    pub(crate) fn take_key(&mut self) -> Result<(), Error> {
        let key = Key::new().map_err(|errno| {
            let error = self.file().error(Operation::AllocateKey)(errno);
            match Key::explain(errno) {
                Some(kind) => error.with_kind(kind),
                None => error,
            }
        })?;
        let set = self.parts.mapping.set_key(key);
        set.map_err(self.file().error(Operation::Protect))
    }
}
