//! Buffers with a memory protection key.

use crate::builder::{Builder, Protection};
use crate::device::Device;
use crate::error::{Error, Operation};
use crate::sys::{Key, Mapping, Memory};

impl Builder {
    /// Write-protects the buffer at all times, by a memory protection key: a stray store faults,
    /// between sessions and during them, and a system call that is told to write there fails.
    ///
    /// The kernel can still record. This crate's own stores, such as a
    /// [reset](crate::Session::reset), use a right that the thread grants itself and takes back
    /// without a system call. The last call of this and [`write_protected`](Self::write_protected)
    /// wins. The device keeps its key, one of the process's 15, until it is dropped.
    ///
    /// This guards against mistakes. It does not stop other processes, nor a target that changes
    /// its own rights or mappings.
    ///
    /// # Safety
    ///
    /// Reading a [`Trace`](crate::Trace) of such a device faults on a thread that lacks the right
    /// to read. These threads have it: the thread that opens the device, the threads that it starts
    /// afterwards, and a thread that enabled a session or read through a
    /// [`ChildBuffer`](crate::ChildBuffer). The caller must, on any other thread and in every
    /// signal handler, call [`allow_reading`](crate::Device::allow_reading) before reading a trace.
    ///
    /// # Platforms
    ///
    /// Linux on x86, also for 32-bit programs under a 64-bit kernel, if the processor has keys and
    /// the kernel uses them (`ospke` in /proc/cpuinfo). Elsewhere [`open`](Self::open) fails with
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
    /// Assigns a key to the buffer. The key, maybe of another mapping, must outlive this mapping.
    pub(crate) fn cover(&self, key: Option<&Key>) -> Result<(), i32> {
        let (Memory::Kernel(pages), Some(key)) = (&self.memory, key) else { return Ok(()) };
        // SAFETY: these pages are a buffer. The caller of `Builder::write_protected_by_key`
        // promised that threads without the right do not read it; this crate stores only with the
        // right.
        unsafe { key.cover(pages) }
    }

    /// The key that this mapping owns.
    #[inline]
    pub(crate) fn key(&self) -> Option<&Key> {
        self.key.as_ref()
    }
}

impl Device {
    /// Lets the calling thread read the buffer of a device opened with
    /// [`write_protected_by_key`](crate::Builder::write_protected_by_key), which says who must call
    /// this. Does nothing without a key.
    ///
    /// Executes two instructions on a register of the thread, no system call. A signal handler
    /// loses the right when it returns.
    #[inline]
    pub fn allow_reading(&self) {
        if let Some(key) = self.parts.mapping.key() {
            key.allow_reading();
        }
    }

    /// Allocates a key and assigns it to the buffer.
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
