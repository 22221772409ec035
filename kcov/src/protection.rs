//! Buffers that bear a memory protection key.

use crate::builder::{Builder, Protection};
use crate::device::Device;
use crate::error::{Error, Operation};
use crate::sys::{Key, Mapping, Memory};

impl Builder {
    /// Write-protects the buffer at all times, by a memory protection key: a stray store faults
    /// between sessions and during them, and a system call that is told to write there fails.
    ///
    /// The kernel records all the same. What this crate stores itself, such as the 0 of a
    /// [reset](crate::Session::reset), it stores with the right to, which a thread gives itself and
    /// takes back without a system call. The last of this and
    /// [`write_protected`](Self::write_protected) wins. The device keeps its key, one of the process's
    /// 15, until it is dropped.
    ///
    /// This is for mistakes. It does not stop other processes, nor a target that changes its own
    /// rights or its mappings.
    ///
    /// # Safety
    ///
    /// Reading a [`Trace`](crate::Trace) of such a device faults on a thread that lacks the right to
    /// read. These have it: the thread that opens the device, the threads that it starts afterwards,
    /// and a thread that enabled a session or read through a [`ChildBuffer`](crate::ChildBuffer). On
    /// any other thread, and in every signal handler, call
    /// [`allow_reading`](crate::Device::allow_reading) before you read a trace.
    ///
    /// # Platforms
    ///
    /// Linux on x86, also for 32-bit programs under a 64-bit kernel, if the processor has keys and the
    /// kernel uses them (`ospke` in /proc/cpuinfo). Elsewhere [`open`](Self::open) fails with
    /// [`NoProtectionKeys`](crate::ErrorKind::NoProtectionKeys).
    ///
    /// # References
    ///
    /// pkeys(7).
    #[doc(alias = "pkey_alloc")]
    #[doc(alias = "pkey_mprotect")]
    pub unsafe fn write_protected_by_key(mut self) -> Builder {
        self.protection = Protection::Key;
        self
    }
}

impl Mapping {
    /// Gives the buffer a key that outlives the mapping, perhaps that of another one.
    pub(crate) fn cover(&self, key: Option<&Key>) -> Result<(), i32> {
        let (Memory::Kernel(pages), Some(key)) = (&self.memory, key) else { return Ok(()) };
        // SAFETY: these pages are the buffer. Whoever asked for a key promised in
        // `Builder::write_protected_by_key` that threads without the right do not read it, and this
        // crate stores with the right only.
        unsafe { key.cover(pages) }
    }

    /// The key that is its own.
    #[inline]
    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }
}

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
        self.parts.mapping.key = Some(key);
        let mapping = &self.parts.mapping;
        mapping.cover(mapping.key()).map_err(self.file().error(Operation::Protect))
    }
}
