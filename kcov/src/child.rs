//! A buffer that child processes fill.

use crate::device::Device;
use crate::error::Error;
use crate::mode::{Mode, SEAL};
use crate::session::Session;
use crate::trace::Trace;
use std::borrow::{Borrow, BorrowMut};

/// A device whose buffer child processes fill, in one mode, and their parent reads.
///
/// The parent opens the device before the first fork and reads the trace when the child has ended;
/// a child that ends without disabling is disabled by the kernel. As with [`Session`], `D` is `&mut
/// Device` or [`Device`].
///
/// ```no_run
/// use kcov::{Device, mode::TracePc};
///
/// # fn fork() -> i32 { 0 } fn wait() {}
/// let mut buffer = Device::open()?.into_child_buffer(TracePc)?;
/// for _ in 0..3 {
///     buffer.reset()?;
///     if fork() == 0 {
///         let _session = buffer.enable()?;
///         // ... the system calls to trace ...
///         std::process::exit(0);
///     }
///     wait();
///     println!("{} records", buffer.trace().len());
/// }
/// # Ok::<(), kcov::Error>(())
/// ```
///
/// A forked child inherits the device and could enable it in another mode; the parent would then
/// misread the records. Let children enable only through this value. On Linux a child also inherits
/// the common handle of its parent's [remote session](crate::remote::linux), which then collects
/// from objects that the child sets up.
#[derive(Debug)]
pub struct ChildBuffer<M: Mode, D: Borrow<Device> = Device> {
    device: D,
    mode: M,
}

impl<M: Mode, D: Borrow<Device>> ChildBuffer<M, D> {
    /// Wraps an idle device with an empty buffer.
    pub(crate) fn new(device: D, mode: M) -> ChildBuffer<M, D> {
        ChildBuffer { device, mode }
    }

    /// In the parent: forgets the records. Then a child that dies before it enables leaves an empty
    /// trace, not its predecessor's.
    ///
    /// # Errors
    ///
    /// Fails only if the buffer is [write-protected](crate::Builder::write_protected) and was
    /// unmapped.
    #[inline]
    pub fn reset(&mut self) -> Result<(), Error> {
        let device = self.device.borrow();
        device.set_writable(true)?;
        device.set_count(self.mode.kind(SEAL).width(device.buffer().width()), 0);
        device.set_writable(false)
    }

    /// In the parent: what the last child left. Wait for the child first.
    #[inline]
    #[must_use]
    pub fn trace(&self) -> Trace<'_, M> {
        let device = self.device.borrow();
        #[cfg(feature = "pkeys")]
        device.allow_reading();
        Trace::freeze(device.buffer(), self.mode)
    }

    /// The device that children enable.
    #[must_use]
    pub fn device(&self) -> &Device {
        self.device.borrow()
    }

    /// Returns the device.
    #[must_use]
    pub fn into_device(self) -> D {
        self.device
    }
}

impl<M: Mode, D: BorrowMut<Device>> ChildBuffer<M, D> {
    /// In the child: starts tracing the calling thread, with an empty trace.
    ///
    /// Does not allocate, so it may follow a fork of a multithreaded process. Makes as many system
    /// calls as [`Device::enable`].
    ///
    /// # Errors
    ///
    /// Same as [`Device::enable`].
    pub fn enable(&mut self) -> Result<Session<M, &mut Device>, Error> {
        self.device.borrow_mut().enable(self.mode)
    }
}
